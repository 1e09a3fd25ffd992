"""Writes to models by Django's signals, each of which invalidates the pages of its row.

Writes without signals (QuerySet.update, bulk_create, raw SQL) call `invalidate` themselves.
"""

from __future__ import annotations

import functools
import itertools
import logging
from collections.abc import Callable, Iterator
from typing import Any

from django.apps import apps
from django.core.signals import setting_changed
from django.db import models
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_save
from django.dispatch import Signal

from benchapp.caching.conf import app_settings
from benchapp.caching.invalidation import StalePages, invalidate

CREATED, CHANGED, DELETED = "created", "changed", "deleted"
# The pages that are stale once a row is CREATED, CHANGED or DELETED.
PagesOf = Callable[[Any, str], StalePages]
Models = tuple[type[models.Model], ...]

logger = logging.getLogger(__name__)


def watch(model: type[models.Model], pages_of: PagesOf, remembers: bool = True, covering: Models = ()) -> str:
    """Invalidate pages after each write of a row of a model or its child models.

    Returns a name for `unwatch`. Without an active layer no signal is connected: a write costs the same as in Django.

    remembers  whether a changed row may leave other pages than it enters: then the row is read before the save
    covering   models whose deleted rows make all pages of cascaded rows stale
    """
    name = f"stale_{model._meta.label}_{getattr(pages_of, '__name__', 'by_settings')}"
    # An application can get ready twice.
    unwatch(name)
    watch = _watches[name] = _Watch(name, model, pages_of, remembers, covering)
    if app_settings.CACHING_LAYERS:
        watch.connect()
    return name


def unwatch(name: str) -> None:
    """Forget a watch by the name that `watch` has returned."""
    if name in _watches:
        _watches.pop(name).disconnect()


def follow_settings(setting: str, **kwargs: object) -> None:
    """Receiver of `setting_changed`: connect or disconnect all watches, if layers came or went."""
    if setting != "CACHING_LAYERS":
        return
    for watch in _watches.values():
        if app_settings.CACHING_LAYERS:
            watch.connect()
        else:
            watch.disconnect()


def _harmless(receiver: Callable[..., None]) -> Callable[..., None]:
    """The receiver; an error is logged and does not stop the write."""

    @functools.wraps(receiver)
    def safe(watch: _Watch, **kwargs: object) -> None:
        try:
            receiver(watch, **kwargs)
        except Exception:
            # Its own words for itself may be what failed.
            logger.exception("%s: a row is not invalidated; it shows after the time to live", type(kwargs["instance"]))

    return safe


class _Watch:
    def __init__(
        self, name: str, model: type[models.Model], pages_of: PagesOf, remembers: bool, covering: Models
    ) -> None:
        # Under its name a row remembers the pages that it was on, too.
        self.name, self.model, self.pages_of, self.covering = name, model, pages_of, covering
        self.remembers = remembers

    def connect(self) -> None:
        """Connect to no other model: Django deletes the rows of one without receivers at once."""
        for signal, sender, receiver in self._receivers():
            signal.connect(receiver, sender=sender, weak=False, dispatch_uid=self.name)

    def disconnect(self) -> None:
        """Leave the models as without layers."""
        for signal, sender, _ in self._receivers():
            signal.disconnect(sender=sender, dispatch_uid=self.name)

    def _receivers(self) -> Iterator[tuple[Signal, type[models.Model], Callable[..., None]]]:
        for model in apps.get_models():
            if not issubclass(model, self.model):
                continue
            yield post_save, model, self.saved
            yield post_delete, model, self.deleted
            if self.remembers:
                yield pre_save, model, self.remember
            for through in _relations(model):
                yield m2m_changed, through, self.related

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


_watches: dict[str, _Watch] = {}
setting_changed.connect(follow_settings)


def _relations(model: type[models.Model]) -> set[type[models.Model]]:
    """The tables of relations of many rows to many, declared by the model or by another one."""
    own = {field.remote_field.through for field in model._meta.many_to_many}
    return own | {relation.through for relation in model._meta.related_objects if relation.many_to_many}


def _related(through: type[models.Model], instance: models.Model, model: type[models.Model], using: str) -> set[object]:
    """The keys of the rows of a model to which a table of relations joins an instance, in either direction."""
    ends = [field for field in through._meta.fields if field.remote_field]
    rows = through._base_manager.using(using)
    keys: set[object] = set()
    for mine, theirs in itertools.permutations(ends, 2):
        if isinstance(instance, mine.related_model) and issubclass(model, theirs.related_model):
            keys.update(rows.filter(**{mine.attname: instance.pk}).values_list(theirs.attname, flat=True))
    return keys
