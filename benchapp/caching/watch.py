"""Writes to models by Django's signals, each of which invalidates the pages of its row.

Writes that send no signals (QuerySet.update, bulk_create, raw SQL) call `invalidate` themselves.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from django.apps import apps
from django.db import models
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_save

from benchapp.caching.invalidation import StalePages, invalidate

CREATED, CHANGED, DELETED = "created", "changed", "deleted"
# The pages that are stale once a row is CREATED, CHANGED or DELETED.
PagesOf = Callable[[Any, str], StalePages]
Models = tuple[type[models.Model], ...]

logger = logging.getLogger(__name__)


def watch(model: type[models.Model], pages_of: PagesOf, remembers: bool = True, covering: Models = ()) -> None:
    """Invalidate the pages of each row of a model, and of those that inherit from it, that is written.

    remembers  whether a changed row leaves other pages than it comes to: then it is read before it is saved
    covering   models whose deleted rows make all pages stale of the rows that are deleted with them
    """
    _Watch(model, pages_of, covering).connect(remembers)


def _harmless(receiver: Callable[..., None]) -> Callable[..., None]:
    """The receiver; an error in it is logged and does not stop the write."""

    @functools.wraps(receiver)
    def safe(watch: _Watch, **kwargs: object) -> None:
        try:
            receiver(watch, **kwargs)
        except Exception:
            # Its own words for itself may be what failed.
            logger.exception("%s: a row is not invalidated; it shows after the time to live", type(kwargs["instance"]))

    return safe


class _Watch:
    def __init__(self, model: type[models.Model], pages_of: PagesOf, covering: Models) -> None:
        self.model, self.pages_of, self.covering = model, pages_of, covering
        # An application can get ready twice. Under this name a row remembers the pages that it was on, too.
        self.name = f"stale_{model._meta.label}_{getattr(pages_of, '__name__', 'by_settings')}"

    def connect(self, remembers: bool) -> None:
        """Connect to no other model: Django deletes the rows of one without receivers at once."""
        receivers = {
            post_save: self.saved,
            post_delete: self.deleted,
            **({pre_save: self.remember} if remembers else {}),
        }
        for model in (it for it in apps.get_models() if issubclass(it, self.model)):
            for signal, receiver in receivers.items():
                signal.connect(receiver, sender=model, weak=False, dispatch_uid=self.name)
            for through in _relations(model):
                m2m_changed.connect(self.related, sender=through, weak=False, dispatch_uid=self.name)

    @_harmless
    def remember(self, sender: type[models.Model], instance: models.Model, using: str, **kwargs: object) -> None:
        # `loaddata` saves new instances with the keys of old rows.
        if instance.pk is not None:
            for old in sender._base_manager.using(using).filter(pk=instance.pk):
                instance.__dict__[self.name] = self.pages_of(old, CHANGED)

    @_harmless
    def saved(self, instance: models.Model, created: bool, using: str, **kwargs: object) -> None:
        before = instance.__dict__.pop(self.name, StalePages())
        invalidate(before | self.pages_of(instance, CREATED if created else CHANGED), using)

    @_harmless
    def deleted(
        self, sender: type[models.Model], instance: models.Model, using: str, origin: Any = None, **kwargs: object
    ) -> None:
        model = getattr(origin, "model", type(origin))
        if model is sender or model not in self.covering:
            invalidate(self.pages_of(instance, DELETED), using)

    @_harmless
    def related(
        self,
        sender: type[models.Model],
        instance: models.Model,
        action: str,
        model: type[models.Model],
        pk_set: set | None,
        using: str,
        **kwargs: object,
    ) -> None:
        cleared = f"{self.name}_cleared"
        if action == "pre_clear" and issubclass(model, self.model):
            # Afterwards nothing says which rows they were.
            instance.__dict__[cleared] = _related(sender, instance, model, using)
        if not action.startswith("post_"):
            return
        if isinstance(instance, self.model):
            invalidate(self.pages_of(instance, CHANGED), using)
        if issubclass(model, self.model):
            for row in model._base_manager.using(using).filter(pk__in=pk_set or instance.__dict__.pop(cleared, ())):
                invalidate(self.pages_of(row, CHANGED), using)


def _relations(model: type[models.Model]) -> set[type[models.Model]]:
    """The tables of relations of many rows to many, declared by the model or by another one."""
    own = {field.remote_field.through for field in model._meta.many_to_many}
    return own | {relation.through for relation in model._meta.related_objects if relation.many_to_many}


def _related(through: type[models.Model], instance: models.Model, model: type[models.Model], using: str) -> set[object]:
    """The keys of the rows of a model to which a table of relations joins an instance, in either direction."""
    ends = [field for field in through._meta.fields if field.remote_field]
    joined = [
        (mine.attname, theirs.attname)
        for mine in ends
        for theirs in ends
        if mine is not theirs and isinstance(instance, mine.related_model) and issubclass(model, theirs.related_model)
    ]
    rows = through._base_manager.using(using)
    return {key for mine, theirs in joined for key in rows.filter(**{mine: instance.pk}).values_list(theirs, flat=True)}
