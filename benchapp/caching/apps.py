"""The caching layers as a Django application."""

from __future__ import annotations

from django.apps import AppConfig


class CachingConfig(AppConfig):
    """Connects the active layers to invalidations."""

    name = "benchapp.caching"
    verbose_name = "Caching layers"

    def ready(self) -> None:
        """Connect the layers that CACHING_LAYERS names."""
        from benchapp.caching import registry

        registry.connect()
