"""The site as a Django application."""

from __future__ import annotations

from django.apps import AppConfig


class BenchappConfig(AppConfig):
    """Authors, posts and comments, and the caching strategies laid over their pages."""

    name = "benchapp"
    default_auto_field = "django.db.models.BigAutoField"
