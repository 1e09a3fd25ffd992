"""The root path of ASGI: no site of the kit is below one, and daphne takes one from any client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

Application = Callable[..., Awaitable[None]]


def without_root_path(application: Application) -> Application:
    """An ASGI application without a root path, which would stand in each link: `Daphne-Root-Path: //elsewhere.test`.

    https://github.com/django/daphne/blob/4.2.3/daphne/http_protocol.py
    """

    async def at_root(scope: dict[str, Any], receive: Application, send: Application) -> None:
        await application({**scope, "root_path": ""}, receive, send)

    return at_root
