"""The site as a Django application."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings
from django.db import connection


class BenchappConfig(AppConfig):
    """Authors, posts and comments."""

    name = "benchapp"
    verbose_name = "The site"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have a write invalidate the pages that it makes stale; limit waits for PostgreSQL where a site is served."""
        from benchapp import invalidation

        invalidation.connect()
        if connection.vendor == "postgresql" and settings.BENCHAPP_SERVER != "none":
            # A site on SQLite need not load the driver.
            from benchapp import postgresql_waits

            postgresql_waits.install(settings.BENCHAPP_DATABASE_TIMEOUT)
