"""Rules in a project's settings, instead of its code, for the stale pages of a write.

CACHING_STALE = {"blog.Post": ["/", "/blog/*", "/authors/{author.slug}/"]}: model -> pages that a saved or deleted row
makes stale. `*` covers every page below; `{author.slug}` is looked up in the row, before and after the write. Writes
without signals of Django (QuerySet.update, bulk_create, raw SQL) show after the time to live.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
from collections.abc import Mapping, Sequence

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.core.signals import setting_changed
from django.db import models
from django.utils import translation
from django.utils.encoding import iri_to_uri

from benchapp.caching.conf import app_settings
from benchapp.caching.invalidation import StalePages
from benchapp.caching.model_signals import unwatch, watch
from benchapp.caching.private_apis import has_language_in_urls
from benchapp.caching.row_values import FIELD, has_value

BELOW = "*"
logger = logging.getLogger(__name__)


def connect() -> None:
    """Watch the models of CACHING_STALE. An entry with a problem is logged, and is an error of `manage.py check`."""
    while _names:
        unwatch(_names.pop())
    watched: dict[type[models.Model], dict[type[models.Model], Sequence[str]]] = {}
    for label, pages in rules().items():
        if reason := problem(label, pages):
            logger.error("CACHING_STALE: %s: its pages are not invalidated", reason)
            continue
        model = apps.get_model(label)
        # A proxy has the rows of another model.
        watched.setdefault(model._meta.concrete_model, {})[model] = pages
    for concrete, pages_of_model in watched.items():
        remembers = bool(FIELD.search(str(pages_of_model.values())))
        _names.append(watch(concrete, functools.partial(_pages_of, pages_of_model), remembers))


def rules() -> Mapping[str, Sequence[str]]:
    """CACHING_STALE; empty for a value that is no dictionary, which is an error of `manage.py check`."""
    return app_settings.CACHING_STALE if isinstance(app_settings.CACHING_STALE, Mapping) else {}


def problem(label: str, pages: Sequence[str]) -> str:
    """The reason why an entry of CACHING_STALE cannot be used; else empty."""
    try:
        model = apps.get_model(label)
    except (LookupError, ValueError, AttributeError):
        return f"there is no model {label!r}"
    if model._meta.swapped:
        return f"{label} is replaced by {model._meta.swapped}"
    if isinstance(pages, str) or not all(isinstance(page, str) for page in pages):
        return f"{label} needs a list of pages"
    for page in pages:
        for name in FIELD.findall(page):
            if not has_value(model, name):
                return f"{label} has no {name!r}"
        if reason := _problem_of_page(page):
            return f"{label}: {reason}: {page!r}"
    return ""


def _problem_of_page(page: str) -> str:
    """The reason why a page has no path, whatever its row; empty if it may have one."""
    if set(FIELD.sub("", page)) & set("{}"):
        return "braces are for names of fields, such as {author.slug}"
    if not page.startswith(("/", "{")):
        return "a page begins with a slash"
    if page.endswith(BELOW) and not page.rstrip(BELOW).endswith(("/", "}")):
        return "pages below one end with /*"
    return ""


def follow_settings(setting: str, **kwargs: object) -> None:
    """Receiver of `setting_changed`."""
    if setting == "CACHING_STALE" and apps.ready:
        connect()


# What `watch` has returned.
_names: list[str] = []
setting_changed.connect(follow_settings)


def _pages_of(rules: Mapping[type[models.Model], Sequence[str]], instance: models.Model, change: str) -> StalePages:
    """The pages of a row by the rules of its model, and of the model's proxies, which may have other methods."""
    all_pages = StalePages()
    for model, pages in rules.items():
        row = instance
        if not isinstance(instance, model):
            row = model.__new__(model)
            row.__dict__ = instance.__dict__
        all_pages |= stale_pages(row, pages)
    return all_pages


def stale_pages(instance: models.Model, pages: Sequence[str]) -> StalePages:
    """The pages of one row, except rules with a name that the row lacks."""
    paths, prefixes = set(), set()
    for page, code in itertools.product(pages, _languages()):
        path = _in_language(code, page, instance)
        if not path:
            continue
        if not path.startswith("/") or (path.endswith(BELOW) and not path.rstrip(BELOW).endswith("/")):
            logger.warning("%s is not invalidated: pages begin with a slash, and those below one end with /*", path)
        elif path.endswith(BELOW):
            prefixes.add(path.rstrip(BELOW))
        else:
            paths.add(path)
    return StalePages(frozenset(paths), frozenset(prefixes))


@functools.cache
def _languages() -> tuple[str | None, ...]:
    """The languages in which a page has a path; the active language if paths have no language."""
    if not settings.USE_I18N or not has_language_in_urls(settings.ROOT_URLCONF):
        return (None,)
    return tuple(code for code, _ in settings.LANGUAGES)


def _in_language(code: str | None, page: str, instance: models.Model) -> str | None:
    """The path with the row's values; None if a value is empty."""
    with translation.override(code) if code else contextlib.nullcontext():
        values = {name: _value(instance, name) for name in FIELD.findall(page)}
    if any(value is None for value in values.values()):
        return None
    return FIELD.sub(lambda field: values[field[1]] or "", page)


def _value(instance: models.Model, name: str) -> str | None:
    value: object = instance
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except (AttributeError, ObjectDoesNotExist):
            return None
        if getattr(value, "alters_data", False):
            return None
        value = value() if callable(value) else value
        if value is None:
            return None
    return iri_to_uri(str(value)) or None
