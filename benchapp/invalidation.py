"""Which pages of the site a write makes stale; the caching layers drop them after the commit.

A write makes some exact paths stale, and everything below some prefixes: a new comment shifts every later page of the
list of comments, however many there are. Writes that send no signals of Django (QuerySet.update, bulk_create, raw SQL)
call `invalidate` themselves.
"""

from __future__ import annotations

from django.db import models
from django.db.models.signals import post_delete, post_save, pre_save
from django.urls import reverse

from benchapp.caching.invalidation import StalePages, invalidate
from benchapp.models import Author, Comment, Post

PARENTS = {Post: "author_id", Comment: "post_id"}


def pages_of(instance: Author | Post | Comment) -> StalePages:
    """The pages about one author or post, or about the post of one comment, with all pages of its children."""
    if isinstance(instance, Comment):
        return _detail("post", instance.post_id)
    return _detail(instance._meta.model_name, instance.pk)


def stale_after_write(instance: Author | Post | Comment, created: bool, old_parent: int | None) -> StalePages:
    """The pages that are stale once `instance` is created, changed or deleted.

    `old_parent` is the id of the author or post it belonged to before, where that may have changed.
    """
    home = StalePages(paths=frozenset({reverse("home")}))
    if isinstance(instance, Comment):
        return home | pages_of(instance) | _old_parent("post", old_parent) | _list("comments")
    if isinstance(instance, Post):
        author = _detail("author", instance.author_id) | _old_parent("author", old_parent)
        # The list of authors counts posts, the list of comments names them.
        return home | pages_of(instance) | author | _list("posts") | _list("authors") | _list("comments")
    if created:
        return home | pages_of(instance) | _list("authors")
    # The name stands on the author's posts and in the list of posts.
    below = frozenset({reverse("authors"), reverse("posts")})
    return home | StalePages(prefixes=below)


def connect() -> None:
    """Watch the three tables; called once, when the application is ready."""
    for model in (Author, Post, Comment):
        name = f"invalidation-{model.__name__}"
        pre_save.connect(_remember_parent, sender=model, dispatch_uid=name)
        post_save.connect(_saved, sender=model, dispatch_uid=name)
        post_delete.connect(_deleted, sender=model, dispatch_uid=name)


def _list(name: str) -> StalePages:
    """A list: its first page and all later ones, but not the detail pages that share its prefix."""
    return StalePages(frozenset({reverse(name)}), frozenset({f"{reverse(name)}page/"}))


def _detail(name: str, pk: int) -> StalePages:
    return StalePages(prefixes=frozenset({reverse(name, args=[pk])}))


def _old_parent(name: str, pk: int | None) -> StalePages:
    return StalePages() if pk is None else _detail(name, pk)


def _remember_parent(sender: type[models.Model], instance: models.Model, using: str, **kwargs: object) -> None:
    """Note the parent of the stored row before it is overwritten: the row may move to another parent."""
    column = PARENTS.get(sender)
    # Also for a new instance with the key of an existing row: `loaddata` writes so.
    if column and instance.pk is not None:
        rows = sender._default_manager.using(using).filter(pk=instance.pk)
        instance._parent_before_save = rows.values_list(column, flat=True).first()


def _saved(instance: models.Model, created: bool, using: str, **kwargs: object) -> None:
    old_parent = instance.__dict__.pop("_parent_before_save", None)
    invalidate(stale_after_write(instance, created, old_parent), using)


def _deleted(
    sender: type[models.Model], instance: models.Model, using: str, origin: object = None, **kwargs: object
) -> None:
    # A cascading delete may remove thousands of rows: the invalidation of its author or post covers them all.
    deleted_model = getattr(origin, "model", type(origin))
    if deleted_model is sender or deleted_model not in (Author, Post):
        invalidate(stale_after_write(instance, created=False, old_parent=None) | _list("comments"), using)
