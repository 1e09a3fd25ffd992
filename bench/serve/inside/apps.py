"""The probes as a Django application."""

from __future__ import annotations

from django.apps import AppConfig


class ProbesConfig(AppConfig):
    """Views and commands for any project, under a label that no app of a project has."""

    name = "bench.serve.inside"
    label = "benchapp_probes"

    def ready(self) -> None:
        """Have stores of bodies accept pages named by `rendering`, whose names they lose, and have the middleware of
        another project let visitors through to the probes.
        """
        from django.conf import settings

        from bench.serve.inside.serving import let_in
        from benchapp.caching import cacheability

        cacheability.COMMON.add("x-render-id")
        if hasattr(settings, "OVERLAID_URLCONF"):
            let_in.begin()
