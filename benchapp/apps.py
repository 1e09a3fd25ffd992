from __future__ import annotations

from django.apps import AppConfig


class BenchappConfig(AppConfig):
    name = "benchapp"
    verbose_name = "The site"
    default_auto_field = "django.db.models.BigAutoField"
