"""What a project's settings say of its pages, so that its code need not: which of them a write makes stale.

CACHING_STALE = {"blog.Post": ["/", "/blog/*", "/authors/{author.slug}/"]}: model -> pages that a saved or deleted row
makes stale. `*` covers every page below; `{author.slug}` is looked up in the row, as it was and as it is now. Writes
that send no signals of Django (QuerySet.update, bulk_create, raw SQL) show after the time to live.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import re
from collections.abc import Callable, Mapping, Sequence

from django.apps import apps
from django.conf import settings
from django.conf.urls.i18n import is_language_prefix_patterns_used
from django.core.exceptions import ImproperlyConfigured, ObjectDoesNotExist
from django.db import models
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_save
from django.utils import translation
from django.utils.encoding import iri_to_uri

from benchapp.caching.invalidation import StalePages, invalidate

FIELD = re.compile(r"\{([\w.]+)\}")
BELOW = "*"
logger = logging.getLogger(__name__)


def connect() -> None:
    """Watch the models of CACHING_STALE, where a layer is active.

    Raises ImproperlyConfigured for a model, or a field, that there is not.
    """
    stale = getattr(settings, "CACHING_STALE", {}) if settings.CACHING_LAYERS else {}
    watched: dict[type[models.Model], dict[type[models.Model], Sequence[str]]] = {}
    for label, pages in stale.items():
        try:
            model = apps.get_model(label)
        except (LookupError, ValueError):
            raise ImproperlyConfigured(f"CACHING_STALE: there is no model {label!r}") from None
        if model._meta.swapped:
            raise ImproperlyConfigured(f"CACHING_STALE: {label} is replaced by {model._meta.swapped}")
        for name in FIELD.findall("".join(pages)):
            if not hasattr(model, name.partition(".")[0]):
                raise ImproperlyConfigured(f"CACHING_STALE: {label} has no {name!r}")
        # A proxy has the rows of another model.
        watched.setdefault(model._meta.concrete_model, {})[model] = pages
    for concrete, said in watched.items():
        _Watch(concrete, said).connect()


def stale_pages(instance: models.Model, pages: Sequence[str]) -> StalePages:
    """The pages of one row; those that name something that it has not are left out."""
    paths, prefixes = set(), set()
    for path in filter(None, (_in_language(code, page, instance) for page in pages for code in _languages())):
        if not path.startswith("/") or (path.endswith(BELOW) and not path.rstrip(BELOW).endswith("/")):
            logger.warning("%s is not invalidated: pages begin with a slash, and those below one end with /*", path)
        elif path.endswith(BELOW):
            prefixes.add(path.rstrip(BELOW))
        else:
            paths.add(path)
    return StalePages(frozenset(paths), frozenset(prefixes))


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
    """What hears of writes to a model and to those that inherit from it, and invalidates the pages of the rows."""

    def __init__(self, watched: type[models.Model], pages: Mapping[type[models.Model], Sequence[str]]) -> None:
        """`pages` of the model, and of its proxies, whose methods are theirs alone."""
        self.watched, self.pages = watched, pages
        # What a row remembers, too.
        self.name = f"stale_before_save_of_{watched._meta.label}"

    def connect(self) -> None:
        """Connect to no other model: Django deletes the rows of one without receivers at once."""
        receivers = [(post_save, self.changed), (post_delete, self.changed)]
        if FIELD.search("".join(page for pages in self.pages.values() for page in pages)):
            receivers.append((pre_save, self.remember))
        for model in (it for it in apps.get_models() if issubclass(it, self.watched)):
            for signal, receiver in receivers:
                signal.connect(receiver, sender=model, weak=False, dispatch_uid=self.name)
            for through in _relations(model):
                m2m_changed.connect(self.related, sender=through, weak=False, dispatch_uid=self.name)

    @_harmless
    def remember(self, sender: type[models.Model], instance: models.Model, using: str, **kwargs: object) -> None:
        # A changed row leaves the pages that it was on, too. `loaddata` saves new instances with the keys of old rows.
        if instance.pk is not None:
            for old in sender._base_manager.using(using).filter(pk=instance.pk):
                instance.__dict__[self.name] = self._stale(old)

    @_harmless
    def changed(self, instance: models.Model, using: str, **kwargs: object) -> None:
        self._invalidate(instance, using)

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
        if action == "pre_clear" and issubclass(model, self.watched):
            # Afterwards nothing says which rows they were.
            instance.__dict__[f"{self.name}_cleared"] = _related(sender, instance, model, using)
        if not action.startswith("post_"):
            return
        if isinstance(instance, self.watched):
            self._invalidate(instance, using)
        if issubclass(model, self.watched):
            keys = pk_set or instance.__dict__.pop(f"{self.name}_cleared", ())
            for row in model._base_manager.using(using).filter(pk__in=keys):
                self._invalidate(row, using)

    def _invalidate(self, instance: models.Model, using: str) -> None:
        before = instance.__dict__.pop(self.name, StalePages())
        if stale := before | self._stale(instance):
            invalidate(stale, using)

    def _stale(self, instance: models.Model) -> StalePages:
        found = StalePages()
        for model, pages in self.pages.items():
            row = instance
            if not isinstance(instance, model):
                row = model.__new__(model)
                row.__dict__ = instance.__dict__
            found |= stale_pages(row, pages)
        return found


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


@functools.cache
def _languages() -> tuple[str | None, ...]:
    """The languages in which a page has a path each; where paths have none, the one that is active."""
    if not settings.USE_I18N or not is_language_prefix_patterns_used(settings.ROOT_URLCONF)[0]:
        return (None,)
    return tuple(code for code, _ in settings.LANGUAGES)


def _in_language(code: str | None, page: str, instance: models.Model) -> str | None:
    """The path with the row's values; None where one of them is empty."""
    with translation.override(code) if code else contextlib.nullcontext():
        values = {name: _value(instance, name) for name in FIELD.findall(page)}
    if any(value is None for value in values.values()):
        return None
    return FIELD.sub(lambda found: values[found[1]] or "", page)


def _value(instance: models.Model, name: str) -> str | None:
    found: object = instance
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except (AttributeError, ObjectDoesNotExist):
            return None
        if getattr(found, "alters_data", False):
            return None
        found = found() if callable(found) else found
        if found is None:
            return None
    return iri_to_uri(str(found)) or None
