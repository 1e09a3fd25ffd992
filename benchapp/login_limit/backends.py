"""The authentication backend that refuses logins over a limit."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from benchapp.login_limit import attempts, limits


class LimitBackend:
    """First in AUTHENTICATION_BACKENDS: a refused login reaches no other backend, whether its account exists or not.

    The backend knows no accounts and no permissions: `force_login` and sessions skip it.
    """

    @sensitive_variables("credentials")
    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> None:
        """Leave the login to the next backend; raises PermissionDenied over a limit."""
        _decide(request, attempts.begin(limits.limits_of(request, credentials)))

    @sensitive_variables("credentials")
    async def aauthenticate(self, request: HttpRequest | None, **credentials: Any) -> None:
        """The same for `aauthenticate()`."""
        _decide(request, await attempts.abegin(limits.limits_of(request, credentials)))


def _decide(request: HttpRequest | None, allowed: bool) -> None:
    if request is not None:
        # For the middleware.
        request.login_refused = not allowed  # type: ignore[attr-defined]
    if not allowed:
        raise PermissionDenied
