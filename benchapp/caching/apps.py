"""The caching layers as a Django application."""

from __future__ import annotations

from django.apps import AppConfig


class CachingConfig(AppConfig):
    """Connects the layers to invalidations, and invalidations to the models in the settings."""

    name = "benchapp.caching"
    verbose_name = "Caching layers"

    def ready(self) -> None:
        """Connect the layers, and the models of CACHING_STALE."""
        from benchapp.caching import checks as checks
        from benchapp.caching import registry, stale_rules
        from benchapp.caching.invalidation import pages_invalidated

        pages_invalidated.connect(registry.drop_stale_pages)
        stale_rules.connect()
