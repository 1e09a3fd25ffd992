"""The command as a Django application."""

from __future__ import annotations

from django.apps import AppConfig


class CommandConfig(AppConfig):
    """An app with only one command, under a label that no app of a project has."""

    name = "bench.serve.command"
    label = "benchapp_command"
