"""Invalidation: the stale pages of a write, sent to every active layer after the commit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from django.db import DEFAULT_DB_ALIAS, transaction
from django.dispatch import Signal
from django.urls import get_script_prefix

from benchapp.caching.names import as_written
from benchapp.caching.private_apis import commits_later

# Sent with `stale`, a StalePages. A receiver that fails is logged; the other receivers still run.
pages_invalidated = Signal()


@dataclass(frozen=True)
class StalePages:
    """Pages whose cached copies are stale: URL paths without a query, and prefixes that cover every path below.

    Both become names of pages (`names`), percent-encoded or not as given. Raises ValueError for a path without a slash
    at the beginning, and a prefix without a slash at the end.
    """

    paths: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for path in self.paths | self.prefixes:
            if not path.startswith("/") or (path in self.prefixes and not path.endswith("/")):
                raise ValueError(f"stale pages begin with a slash, and prefixes end with one: {path!r}")
        object.__setattr__(self, "paths", frozenset(map(as_written, self.paths)))
        object.__setattr__(self, "prefixes", frozenset(map(as_written, self.prefixes)))

    def __or__(self, other: StalePages) -> StalePages:
        return StalePages(self.paths | other.paths, self.prefixes | other.prefixes)

    def __bool__(self) -> bool:
        return bool(self.paths or self.prefixes)

    def covers(self, name: str) -> bool:
        """True if a cached copy of the page of this name is stale."""
        return name in self.paths or any(name.startswith(prefix) for prefix in self.prefixes)


def invalidate(stale: StalePages, using: str = DEFAULT_DB_ALIAS) -> None:
    """Invalidate pages after the current transaction commits, at once outside of a transaction, never after a rollback.

    The pages of all writes of a transaction are sent together, each once: a deleted row may take thousands of others
    with it.
    """
    if stale:
        connection = transaction.get_connection(using)
        # With a new transaction a new list begins: one that was rolled back has left its own.
        waiting = getattr(connection, "stale_pages", []) if commits_later(connection) else []
        connection.stale_pages = waiting
        waiting.append(stale)
        transaction.on_commit(partial(_send, waiting, len(waiting) - 1), using=using, robust=True)


def _send(waiting: list[StalePages], first: int) -> None:
    """Send all pages that wait, from this call on. If no page waits, another call has sent them.

    Pages of a savepoint that was rolled back may be among them, which costs these pages one rendering.
    """
    if together := waiting[first:]:
        del waiting[first:]
        paths = frozenset().union(*(stale.paths for stale in together))
        prefixes = frozenset().union(*(stale.prefixes for stale in together))
        pages_invalidated.send_robust(sender=StalePages, stale=StalePages(paths, prefixes))


def all_pages() -> StalePages:
    """All pages, for writes of unknown reach."""
    return StalePages(prefixes=frozenset({get_script_prefix()}))
