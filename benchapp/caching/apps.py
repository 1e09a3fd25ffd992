"""The caching layers as a Django application."""

from __future__ import annotations

from django.apps import AppConfig


class CachingConfig(AppConfig):
    """Connects the active layers to invalidations, and these to the models that settings name."""

    name = "benchapp.caching"
    verbose_name = "Caching layers"

    def ready(self) -> None:
        """Connect the layers that CACHING_LAYERS names, and the models of CACHING_STALE."""
        from benchapp.caching import registry, stale

        registry.connect()
        stale.connect()
