"""The ASGI application of the site; what these tests start later is no server."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

from config.asgi import application as application

del os.environ["BENCHAPP_SERVER"]
# As a project has it, over which the kit lays its own.
plain = get_asgi_application()
