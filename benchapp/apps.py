"""The site as a Django application."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.backends.signals import connection_created


def see_replaced_rows(connection: Any, **kwargs: Any) -> None:
    """Let the page index see the row that INSERT OR REPLACE deletes; SQLite hides it by default."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA recursive_triggers = ON")


class BenchappConfig(AppConfig):
    """Authors, posts and comments."""

    name = "benchapp"
    verbose_name = "The site"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Complete new database connections; invalidate the pages that a write makes stale."""
        from benchapp import invalidation

        connection_created.connect(see_replaced_rows, dispatch_uid="benchapp.see_replaced_rows")
        invalidation.connect()
