"""Limit of request bodies over ASGI, whose servers have none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

Application = Callable[..., Awaitable[None]]

WORDS = b"413 Content Too Large"
REFUSAL = (
    {
        "type": "http.response.start",
        "status": 413,
        "headers": [
            (b"content-type", b"text/plain"),
            (b"content-length", str(len(WORDS)).encode()),
            (b"x-content-type-options", b"nosniff"),
        ],
    },
    {"type": "http.response.body", "body": WORDS},
)
GONE = {"type": "http.disconnect"}


def limited(application: Application, max_mb: int) -> Application:
    """An ASGI application with request bodies of at most so many MB; a larger one gets a 413.

    0 is no limit. Django reads a whole body into a file before the call of the view, whatever its length.
    """
    if not max_mb:
        return application
    max_bytes = max_mb * 1048576

    async def limits(scope: dict[str, Any], receive: Application, send: Application) -> None:
        taken = 0

        async def counted() -> Any:
            nonlocal taken
            message: Any = await receive()
            taken += len(message.get("body", b""))
            if taken <= max_bytes:
                return message
            for part in REFUSAL:
                await send(part)
            # The application gives the request up.
            return GONE

        await application(scope, counted if scope["type"] == "http" else receive, send)

    return limits
