"""The ASGI application that servers import in place of a project's own, OVERLAID_ASGI (`module:name`)."""

from __future__ import annotations

import os
from importlib import import_module

from benchapp_overlay import websockets

_module, _, _name = os.environ["OVERLAID_ASGI"].partition(":")
application = websockets.refusing(getattr(import_module(_module), _name))
