"""WSGI entry point: gunicorn, uWSGI, mod_wsgi and others import `application`."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# The settings of a server differ from those of commands.
os.environ["BENCHAPP_SERVER"] = "wsgi"

application = get_wsgi_application()
