"""The site as a Django application."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.db.backends.signals import connection_created


def see_replaced_rows(connection: Any, **kwargs: Any) -> None:
    """Let the page index see the row that INSERT OR REPLACE deletes; SQLite hides it by default."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA recursive_triggers = ON")


class BenchappConfig(AppConfig):
    """Authors, posts and comments, and the caching strategies laid over their pages."""

    name = "benchapp"
    verbose_name = "The site"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Complete new database connections; let writes tell the caching layers what they made stale."""
        from benchapp.caching import (
            anonymouspages,
            fragments,
            nginxpages,
            purge,
            staleness,
            staticgenerator,
            uwsgipages,
        )

        connection_created.connect(see_replaced_rows, dispatch_uid="benchapp.see_replaced_rows")
        staleness.connect()
        # The inner before the outer, so that no outer one is filled again from what an inner one still holds.
        fragments.connect()
        anonymouspages.connect()
        uwsgipages.connect()
        staticgenerator.connect()
        if settings.BENCHAPP_MEMCACHED_PAGES:
            # Its client is a package that only this layer needs.
            from benchapp.caching import memcachedpages

            memcachedpages.connect()
        nginxpages.connect()
        purge.connect()
