"""ASGI entry point, for servers that speak it."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

from benchapp_overlay import websockets

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# The settings of a server differ from those of commands.
os.environ["BENCHAPP_SERVER"] = "asgi"

websockets.refuse()
application = get_asgi_application()
