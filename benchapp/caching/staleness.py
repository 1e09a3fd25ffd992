"""Which pages a write makes stale, told to every caching layer by one signal.

Pages are URL paths without a query string. A write makes some exact paths stale and everything below some
prefixes: a new comment shifts every later page of the list of comments, however many there are.

The signal is sent after the transaction has committed, never for one that is rolled back. Writes that send
no signals of Django (QuerySet.update, bulk_create, raw SQL) call `announce` themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from django.db import DEFAULT_DB_ALIAS, models, transaction
from django.db.models.signals import post_delete, post_save, pre_save
from django.dispatch import Signal
from django.urls import reverse

from benchapp.models import Author, Comment, Post

# Sent with `stale`, a Stale. A receiver that fails is logged and does not keep the others from being told.
pages_stale = Signal()


@dataclass(frozen=True)
class Stale:
    """Pages whose stored copies are out of date: exact paths, and prefixes that cover all paths below."""

    paths: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for path in self.paths | self.prefixes:
            if not (path.startswith("/") and path.endswith("/")):
                raise ValueError(f"stale pages begin and end with a slash: {path!r}")

    def __or__(self, other: Stale) -> Stale:
        return Stale(self.paths | other.paths, self.prefixes | other.prefixes)

    def covers(self, path: str) -> bool:
        """Whether a stored copy of this path has to go."""
        return path in self.paths or any(path.startswith(prefix) for prefix in self.prefixes)


def everything() -> Stale:
    """All pages of the site, for writes whose reach is not known."""
    return Stale(prefixes=frozenset({reverse("home")}))


def pages_of(instance: Author | Post | Comment) -> Stale:
    """The pages about one author or post, or about the post of one comment, with all pages of its children."""
    if isinstance(instance, Comment):
        return _detail("post", instance.post_id)
    return _detail(instance._meta.model_name, instance.pk)


def stale_after_write(instance: Author | Post | Comment, created: bool, old_parent: int | None) -> Stale:
    """The pages out of date once `instance` is created, changed or deleted.

    `old_parent` is the id of the author or post it belonged to before, where that may have changed.
    """
    home = Stale(paths=frozenset({reverse("home")}))
    if isinstance(instance, Comment):
        return home | pages_of(instance) | _old("post", old_parent) | _list("comments")
    if isinstance(instance, Post):
        author = _detail("author", instance.author_id) | _old("author", old_parent)
        # The list of authors counts posts, the list of comments names them.
        return home | pages_of(instance) | author | _list("posts") | _list("authors") | _list("comments")
    if created:
        return home | pages_of(instance) | _list("authors")
    # The name stands on the author's posts and in the list of posts.
    below = frozenset({reverse("authors"), reverse("posts")})
    return home | Stale(prefixes=below)


def announce(stale: Stale, using: str = DEFAULT_DB_ALIAS) -> None:
    """Tell the caching layers once the current transaction has committed; at once outside of one."""
    transaction.on_commit(partial(_send, stale), using=using, robust=True)


def connect() -> None:
    """Watch the three tables; called once, when the application is ready."""
    for model in (Author, Post, Comment):
        name = f"staleness-{model.__name__}"
        pre_save.connect(_remember_parent, sender=model, dispatch_uid=name)
        post_save.connect(_saved, sender=model, dispatch_uid=name)
        post_delete.connect(_deleted, sender=model, dispatch_uid=name)


def _send(stale: Stale) -> None:
    pages_stale.send_robust(sender=Stale, stale=stale)


def _list(name: str) -> Stale:
    """A list: its first page and all later ones, but not the detail pages that share its prefix."""
    return Stale(frozenset({reverse(name)}), frozenset({f"{reverse(name)}page/"}))


def _detail(name: str, pk: int) -> Stale:
    return Stale(prefixes=frozenset({reverse(name, args=[pk])}))


def _old(name: str, pk: int | None) -> Stale:
    return Stale() if pk is None else _detail(name, pk)


PARENTS = {Post: "author_id", Comment: "post_id"}


def _remember_parent(sender: type[models.Model], instance: models.Model, using: str, **kwargs: object) -> None:
    """Note whose child the stored row is before it is overwritten: it may be moved to another parent."""
    column = PARENTS.get(sender)
    # Also one that was just made, with the key of a row that is there: `loaddata` writes so.
    if column and instance.pk is not None:
        rows = sender._default_manager.using(using).filter(pk=instance.pk)
        instance._parent_before_save = rows.values_list(column, flat=True).first()


def _saved(instance: models.Model, created: bool, using: str, **kwargs: object) -> None:
    old_parent = instance.__dict__.pop("_parent_before_save", None)
    announce(stale_after_write(instance, created, old_parent), using)


def _deleted(
    sender: type[models.Model], instance: models.Model, using: str, origin: object = None, **kwargs: object
) -> None:
    # What is deleted along with its author or post is told of with that: it may be thousands of rows.
    asked_for = getattr(origin, "model", type(origin))
    if asked_for is sender or asked_for not in (Author, Post):
        announce(stale_after_write(instance, created=False, old_parent=None) | _list("comments"), using)
