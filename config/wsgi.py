"""WSGI entry point: `application` is what gunicorn, uWSGI, mod_wsgi and the like import."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

django_application = get_wsgi_application()

# Settings can be read only now.
from django.conf import settings  # noqa: E402

from config.database_waits import limit_waits  # noqa: E402
from config.wsgi_middleware import NormalizeRequests  # noqa: E402

limit_waits(settings.BENCHAPP_DATABASE_TIMEOUT)
application = NormalizeRequests(
    django_application, trusts_proxy=bool(settings.BENCHAPP_BEHIND_PROXY or settings.BENCHAPP_TRUSTED_PROXIES)
)
