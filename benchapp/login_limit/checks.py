"""System checks: settings that break the limit."""

from __future__ import annotations

import contextlib
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.utils.module_loading import import_string

from benchapp.login_limit.backends import LimitBackend

MIDDLEWARE = "benchapp.login_limit.middleware.too_many_failed_logins"


def check_backend(**options: Any) -> list[CheckMessage]:
    """A backend before LimitBackend would look at passwords without a limit."""
    first = next(iter(settings.AUTHENTICATION_BACKENDS), "")
    # Django says by itself if a backend cannot be imported.
    with contextlib.suppress(ImportError):
        if first and issubclass(import_string(first), LimitBackend):
            return []
    return [
        Error(
            "No limit of failed logins holds: LimitBackend is not the first of AUTHENTICATION_BACKENDS.",
            hint="Put 'benchapp.login_limit.backends.LimitBackend' first.",
            id="login_limit.E001",
        )
    ]


def check_middleware(**options: Any) -> list[CheckMessage]:
    """Warn of missing middleware: the end of a request would not be seen."""
    if MIDDLEWARE in settings.MIDDLEWARE:
        return []
    return [
        Warning(
            f"{MIDDLEWARE} is not in MIDDLEWARE: right passwords of an API count as wrong ones for a while.",
            hint="Add it after AuthenticationMiddleware.",
            id="login_limit.W002",
        )
    ]


def check_transactions(**options: Any) -> list[CheckMessage]:
    """Warn of ATOMIC_REQUESTS: a view that raises after a failed login would roll the count back."""
    names = [alias for alias, database in settings.DATABASES.items() if database.get("ATOMIC_REQUESTS")]
    if not names:
        return []
    return [
        Warning(
            f"ATOMIC_REQUESTS is on for {', '.join(names)}: a view that raises after a failed login undoes its count.",
            hint="Use transaction.non_atomic_requests on such a view; Django's own login pages do not raise.",
            id="login_limit.W001",
        )
    ]
