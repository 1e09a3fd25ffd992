"""The ASGI application of the site; what these tests start later is no server."""

from __future__ import annotations

import os

from config.asgi import application as application

del os.environ["BENCHAPP_SERVER"]
