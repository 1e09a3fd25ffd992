"""The stale pages of each write; the caching layers drop them after the commit.

A write makes some exact paths stale, and everything below some prefixes: a new comment shifts every later page of the
list of comments.
"""

from __future__ import annotations

from django.urls import reverse

from benchapp.caching.invalidation import StalePages
from benchapp.caching.model_signals import CREATED, DELETED, watch
from benchapp.models import Author, Comment, Post


def connect() -> None:
    """Watch the three tables; called once, when the application is ready."""
    for model in (Author, Post, Comment):
        # A cascading delete may remove thousands of rows: the invalidation of its author or post covers them all.
        watch(model, stale_after_write, covering=(Author, Post))


def stale_after_write(row: Author | Post | Comment, change: str) -> StalePages:
    """The stale pages after a row is created, changed or deleted."""
    stale = StalePages(paths=frozenset({reverse("home")}))
    if isinstance(row, Comment):
        return stale | _detail("post", row.post_id) | _list("comments")
    if isinstance(row, Post):
        # The list of authors counts posts, the list of comments names them.
        lists = _list("posts") | _list("authors") | _list("comments")
        return stale | _detail("post", row.pk) | _detail("author", row.author_id) | lists
    if change == CREATED:
        return stale | _detail("author", row.pk) | _list("authors")
    # The name stands on the author's posts and in the list of posts; with the author these go, and their comments.
    below = StalePages(prefixes=frozenset({reverse("authors"), reverse("posts")}))
    return stale | below | (_list("comments") if change == DELETED else StalePages())


def _list(name: str) -> StalePages:
    """A list: its first page and all later ones, but not the detail pages below the same prefix."""
    return StalePages(frozenset({reverse(name)}), frozenset({f"{reverse(name)}page/"}))


def _detail(name: str, pk: int) -> StalePages:
    """The pages about one author or post, with all pages of its children."""
    return StalePages(prefixes=frozenset({reverse(name, args=[pk])}))
