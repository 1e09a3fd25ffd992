"""All that the app uses of Django and pymemcache beyond their documentation; test_private_apis.py holds each.

Here are functions for attributes of Django. `django_backends` and `pymemcache_client` override methods of caches, most
of them to repair a fault that they link to.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.conf.urls.i18n import is_language_prefix_patterns_used
from django.http import HttpRequest
from django.middleware.common import CommonMiddleware
from django.utils.module_loading import import_string

# How often CommonMiddleware asks a request for its host, to check it.
HOST_READS = 1


def commits_later(connection: Any) -> bool:
    """Whether a database connection has functions to call after the commit."""
    return bool(connection.run_on_commit)


def has_language_in_urls(urlconf: str) -> bool:
    """Whether URLs begin with a language, by `i18n_patterns`."""
    return is_language_prefix_patterns_used(urlconf)[0]


def sets_csrf_cookie(request: HttpRequest) -> bool:
    """Whether CsrfViewMiddleware will set its cookie: the view has used a token."""
    return bool(request.META.get("CSRF_COOKIE_NEEDS_UPDATE"))


def host_reads_of_django() -> int:
    """How often Django's own middleware asks each request for its host."""
    reads = 0
    for name in settings.MIDDLEWARE:
        found = import_string(name)
        if getattr(found, "process_request", None) is CommonMiddleware.process_request:
            reads += HOST_READS
    return reads
