"""Invalidation: the pages that a write made stale, sent to every active layer after the commit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from django.db import DEFAULT_DB_ALIAS, transaction
from django.dispatch import Signal
from django.urls import get_script_prefix

# Sent with `stale`, a StalePages. A receiver that fails is logged; the other receivers still run.
pages_invalidated = Signal()


@dataclass(frozen=True)
class StalePages:
    """Pages whose cached copies are stale: URL paths without a query, and prefixes that cover every path below."""

    paths: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for path in self.paths | self.prefixes:
            if not (path.startswith("/") and path.endswith("/")):
                raise ValueError(f"stale pages begin and end with a slash: {path!r}")

    def __or__(self, other: StalePages) -> StalePages:
        return StalePages(self.paths | other.paths, self.prefixes | other.prefixes)

    def __bool__(self) -> bool:
        return bool(self.paths or self.prefixes)

    def covers(self, path: str) -> bool:
        """Whether a cached copy of this path is stale."""
        return path in self.paths or any(path.startswith(prefix) for prefix in self.prefixes)


def invalidate(stale: StalePages, using: str = DEFAULT_DB_ALIAS) -> None:
    """Invalidate pages after the current transaction commits, at once outside of one, never after a rollback."""
    transaction.on_commit(partial(_send, stale), using=using, robust=True)


def _send(stale: StalePages) -> None:
    pages_invalidated.send_robust(sender=StalePages, stale=stale)


def all_pages() -> StalePages:
    """All pages, for writes whose reach is unknown."""
    return StalePages(prefixes=frozenset({get_script_prefix()}))
