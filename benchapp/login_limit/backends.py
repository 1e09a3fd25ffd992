"""The authentication backend that refuses logins over a limit."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from benchapp.login_limit import limits


class LimitBackend:
    """First in AUTHENTICATION_BACKENDS: a refused login reaches no other backend, whether its account exists or not.

    The backend knows no accounts and no permissions: `force_login` and sessions skip it.
    """

    @sensitive_variables("credentials")
    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> None:
        """Leave the login to the next backend; raises PermissionDenied over a limit."""
        refused = limits.is_refused(limits.limits_of(request, credentials))
        if request is not None:
            # For the counter and the middleware.
            request.login_refused = refused  # type: ignore[attr-defined]
        if refused:
            raise PermissionDenied

    @sensitive_variables("credentials")
    async def aauthenticate(self, request: HttpRequest | None, **credentials: Any) -> None:
        """The same for `aauthenticate()`."""
        await sync_to_async(self.authenticate)(request, **credentials)
