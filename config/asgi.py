"""ASGI entry point."""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.core.asgi import get_asgi_application

from benchapp_overlay import bodies, root_path, websockets

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# The settings of a server differ from those of commands.
os.environ["BENCHAPP_SERVER"] = "asgi"

django = bodies.limited(root_path.without_root_path(get_asgi_application()), settings.BENCHAPP_MAX_BODY_MB)


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Django, which speaks HTTP only: a WebSocket is refused."""
    if scope["type"] == "websocket":
        await websockets.refuse(scope, send)
    else:
        await django(scope, receive, send)
