"""The application, for granian: it looks for what this file imports in its --working-dir."""

from importlib import import_module

application = getattr(import_module("{{ asgi_module }}"), "{{ asgi_name }}")
