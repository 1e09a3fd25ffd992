"""The site from inside a worker, to verify a stack."""

from __future__ import annotations

import os
import sys

import django
from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.urls import NoReverseMatch, get_script_prefix, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from benchapp.caching.private_apis import has_language_in_urls


@never_cache
@require_safe
def failure(request: HttpRequest) -> JsonResponse:
    """Always fails, to show the page that a visitor gets when a view does."""
    raise RuntimeError("a probe requested this failure")


def _token_cookie() -> str:
    """The cookie of a visitor's CSRF token; empty if no middleware sets one."""
    if not any("csrf" in name.lower() for name in settings.MIDDLEWARE):
        return ""
    if settings.CSRF_USE_SESSIONS:
        return settings.SESSION_COOKIE_NAME
    return settings.CSRF_COOKIE_NAME


def _languages() -> list[str]:
    """The languages with which addresses of the site begin; empty without such addresses."""
    if not settings.USE_I18N or not has_language_in_urls(settings.ROOT_URLCONF):
        return []
    return [code for code, _ in settings.LANGUAGES]


def _admin_login() -> str:
    """The path of the admin's login page, without the prefix of the settings; empty without an admin."""
    try:
        path = reverse("admin:login")
    except NoReverseMatch:
        return ""
    return f"/{path.removeprefix(get_script_prefix())}"


@never_cache
@require_safe
def inside(request: HttpRequest) -> JsonResponse:
    """The interpreter that runs the site, and the client as Django sees it."""
    return JsonResponse(
        {
            "python": sys.version.split()[0],
            "prefix": sys.prefix,
            "base_prefix": sys.base_prefix,
            "django": django.get_version(),
            "django_path": django.__path__[0],
            "user_id": os.geteuid(),
            "process_id": os.getpid(),
            "client": request.META.get("REMOTE_ADDR", ""),
            "scheme": request.scheme,
            "host": request.get_host(),
            "port": request.get_port(),
            "session_cookie": settings.SESSION_COOKIE_NAME,
            "token_cookie": _token_cookie(),
            "has_sessions": hasattr(request, "session"),
            "admin_login": _admin_login(),
            "allowed_hosts": settings.ALLOWED_HOSTS,
            "languages": _languages(),
            "public": getattr(settings, "CACHING_PUBLIC", []),
            "forwarded_for": request.META.get("HTTP_X_FORWARDED_FOR", ""),
            "headers": sorted(name.lower() for name in request.headers),
        }
    )
