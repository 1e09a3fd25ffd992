"""The ASGI application that servers import in place of a project's own, OVERLAID_ASGI (`module:name`)."""

from __future__ import annotations

import os
from importlib import import_module

from django.conf import settings

from benchapp_overlay import bodies, root_path, websockets

_module, _, _name = os.environ["OVERLAID_ASGI"].partition(":")
_project = root_path.without_root_path(websockets.refusing(getattr(import_module(_module), _name)))
application = bodies.limited(_project, settings.BENCHAPP_MAX_BODY_MB)
