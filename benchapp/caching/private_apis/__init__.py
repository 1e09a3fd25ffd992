"""All that the app uses of Django and pymemcache beyond their documentation; test_private_apis.py holds each.

Here are functions for attributes of Django. `django_backends` and `pymemcache_client` override methods of caches, most
of them to repair a fault that they link to.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

from django.conf import settings
from django.conf.urls.i18n import is_language_prefix_patterns_used
from django.http import HttpRequest
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware


def commits_later(connection: Any) -> bool:
    """Whether a database connection has functions to call after the commit."""
    return bool(connection.run_on_commit)


def has_language_in_urls(urlconf: str) -> bool:
    """Whether URLs begin with a language, by `i18n_patterns`."""
    return is_language_prefix_patterns_used(urlconf)[0]


def sets_csrf_cookie(request: HttpRequest) -> bool:
    """Whether CsrfViewMiddleware will set its cookie: the view has used a token."""
    return bool(request.META.get("CSRF_COOKIE_NEEDS_UPDATE"))


def reads_of_django() -> dict[str, CodeType]:
    """Names that Django's own middleware looks for in every request, without a page that depends on them.

    Each with its code that does: who else looks for it may show it.
    """
    # It checks the host, and refuses the browsers of DISALLOWED_USER_AGENTS.
    common = CommonMiddleware.process_request.__code__
    # It keeps the secret for a token that the view may use.
    csrf = CsrfViewMiddleware._get_secret.__code__
    return {"host": common, "user-agent": common, f"cookie:{settings.CSRF_COOKIE_NAME}": csrf}
