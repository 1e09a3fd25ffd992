"""WebSockets that reach Django: it speaks none. A project that does routes them past Django, as Channels does."""

from __future__ import annotations

from typing import Any

from django.core import asgi
from django.core.handlers.asgi import ASGIHandler

# What a server can do with an HTTP answer to a handshake; without it, one that is closed is a 403.
# https://asgi.readthedocs.io/en/latest/extensions.html#websocket-denial-response
DENIAL = "websocket.http.response"


class RefusingHandler(ASGIHandler):
    """Django's application, which answers a WebSocket handshake with 400 instead of failing with a traceback."""

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "websocket":
            return await super().__call__(scope, receive, send)
        if DENIAL not in (scope.get("extensions") or {}):
            return await send({"type": "websocket.close"})
        await send({"type": f"{DENIAL}.start", "status": 400, "headers": [(b"content-length", b"0")]})
        await send({"type": f"{DENIAL}.body", "body": b""})
        return None


def refuse() -> None:
    """Have `get_asgi_application` make that application: it has no setting for it."""
    asgi.ASGIHandler = RefusingHandler
