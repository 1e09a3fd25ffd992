"""ASGI entry point, for servers that speak it."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# The settings differ from those of WSGI; see config/asgi_middleware.py.
os.environ.setdefault("BENCHAPP_ASGI", "1")

application = get_asgi_application()
