"""The probes as a Django application."""

from __future__ import annotations

from django.apps import AppConfig


class ProbesConfig(AppConfig):
    """Views and commands for any project, under a label that no app of a project has."""

    name = "bench.inside"
    label = "benchapp_probes"

    def ready(self) -> None:
        """Have stores of bodies take pages that are named by `rendering`, whose names they lose."""
        from benchapp.caching import cacheability

        cacheability.COMMON.add("x-render-id")
