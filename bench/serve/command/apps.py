"""The command as a Django application."""

from __future__ import annotations

from django.apps import AppConfig


class CommandConfig(AppConfig):
    """An app with nothing but its command, under a label that no app of a project has."""

    name = "bench.serve.command"
    label = "benchapp_command"
