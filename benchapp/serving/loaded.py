"""A sign of life of each process of a server: middleware for any project."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.exceptions import MiddlewareNotUsed
from django.utils.decorators import sync_and_async_middleware

# The directory of a server's unit, if it has one.
VARIABLE = "BENCHAPP_LOADED"


@sync_and_async_middleware
def noted(get_response: Callable[..., Any]) -> Callable[..., Any]:
    """Make a file named after this process, once the application is loaded, for the program that starts the server.

    No server reports this: gunicorn and uWSGI tell systemd that they have started before a worker has loaded anything.
    The middleware takes no part in a request. Django loads the first middleware last.
    """
    if folder := os.environ.get(VARIABLE):
        # Without a file the waiting program gives up; the site serves all the same.
        with contextlib.suppress(OSError):
            Path(folder, str(os.getpid())).touch()
    raise MiddlewareNotUsed
