"""Refusal of WebSockets that nobody accepts: Django speaks HTTP only, and fails with a traceback at a handshake."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.compatibility import guarantee_single_callable

Application = Callable[..., Awaitable[None]]

# The extension by which a server sends an HTTP response to a handshake; a server without it makes a 403 of a close.
# https://asgi.readthedocs.io/en/latest/extensions.html#websocket-denial-response
DENIAL = "websocket.http.response"
# How Django's ASGIHandler begins its ValueError, before it has received or sent anything.
NO_WEBSOCKETS = "Django can only handle ASGI/HTTP connections"


async def refuse(scope: dict[str, Any], send: Application) -> None:
    """Refuse a WebSocket's handshake with status 400, or close the WebSocket."""
    if DENIAL not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close"})
        return
    await send({"type": f"{DENIAL}.start", "status": 400, "headers": [(b"content-length", b"0")]})
    await send({"type": f"{DENIAL}.body", "body": b""})


def refusing(application: Any) -> Application:
    """The ASGI application of a project, with a refusal of each WebSocket that the project leaves to Django.

    A project that routes WebSockets, as Channels does, gets all of them, and the project's own errors are raised
    unchanged.
    """
    project = guarantee_single_callable(application)

    async def refuses(scope: dict[str, Any], receive: Application, send: Application) -> None:
        try:
            await project(scope, receive, send)
        except ValueError as error:
            if scope["type"] != "websocket" or not str(error).startswith(NO_WEBSOCKETS):
                raise
            await refuse(scope, send)

    return refuses
