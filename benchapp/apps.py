"""The site as a Django application."""

from __future__ import annotations

from django.apps import AppConfig


class BenchappConfig(AppConfig):
    """Authors, posts and comments."""

    name = "benchapp"
    verbose_name = "The site"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have a write invalidate the pages that it makes stale."""
        from benchapp import invalidation

        invalidation.connect()
