"""Undocumented parts of Django and pymemcache that the app uses; test_private_apis.py holds each.

This module has functions for attributes of Django. `django_backends` and `pymemcache_client` override methods of
caches, most of them to repair a linked fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.conf.urls.i18n import is_language_prefix_patterns_used
from django.http import HttpRequest
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.utils.module_loading import import_string


def commits_later(connection: Any) -> bool:
    """True if a database connection has functions to call after the commit."""
    return bool(connection.run_on_commit)


def has_language_in_urls(urlconf: str) -> bool:
    """True if URLs begin with a language, by `i18n_patterns`."""
    return is_language_prefix_patterns_used(urlconf)[0]


def sets_csrf_cookie(request: HttpRequest) -> bool:
    """True if CsrfViewMiddleware will set its cookie, because the view has used a token."""
    return bool(request.META.get("CSRF_COOKIE_NEEDS_UPDATE"))


def uses_nonce(request: HttpRequest) -> bool:
    """True if the page has a nonce of a Content-Security-Policy, by Django's middleware (from 6.0) or by django-csp.

    Both make it when it is read for the first time; Django's object is false until then.
    """
    return bool(getattr(request, "_csp_nonce", None))


def reads_of_django(middleware: Sequence[str]) -> dict[str, int]:
    """Names that Django's own middleware reads in every request, and how often: no page depends on them.

    A page with more reads of a name may show the value.

    middleware  the entries of MIDDLEWARE that see a watched request
    """
    counts: Counter[str] = Counter()
    for name in middleware:
        component = import_string(name)
        if getattr(component, "process_request", None) is CommonMiddleware.process_request:
            # It checks the host.
            counts["host"] += 1
            if not settings.DISALLOWED_USER_AGENTS:
                # It looks at the browser, and refuses none.
                counts["user-agent"] += 1
        if _keeps_secret(component):
            # It keeps the secret for a token that the view may use.
            counts[f"cookie:{settings.CSRF_COOKIE_NAME}"] += 1
    return dict(counts)


def _keeps_secret(middleware: Any) -> bool:
    """True if a middleware looks for the cookie of CSRF tokens as Django's does."""
    own = (CsrfViewMiddleware.process_request, CsrfViewMiddleware._get_secret)
    return (getattr(middleware, "process_request", None), getattr(middleware, "_get_secret", None)) == own and (
        not settings.CSRF_USE_SESSIONS
    )
