"""The probes of the kit's own site as a Django application."""

from __future__ import annotations

from django.apps import AppConfig


class SiteProbesConfig(AppConfig):
    """Views and commands that only the kit's own site can have."""

    name = "bench.serve.inside.site"
    label = "benchapp_site_probes"
