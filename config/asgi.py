"""ASGI entry point, for servers that speak it."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

from benchapp.serving import websockets

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# The settings differ from those of WSGI; see config/asgi_middleware.py.
os.environ.setdefault("BENCHAPP_ASGI", "1")

websockets.refuse()
application = get_asgi_application()

# Settings can be read only now.
from django.conf import settings  # noqa: E402

from config.database_waits import limit_waits  # noqa: E402

limit_waits(settings.BENCHAPP_DATABASE_TIMEOUT)
