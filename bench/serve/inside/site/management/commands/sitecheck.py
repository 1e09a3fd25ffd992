"""Check that the site can be served as configured, before a server is started."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from django.db import connection

from benchapp.management import databases

# An unreachable host is reported after this many seconds; the operating system would wait for two minutes.
CONNECT_TIMEOUT_S = 5


class Command(BaseCommand):
    """Running reads the settings, then tries the database. A problem is one line without secrets."""

    help = "Try the settings and the database: exit 0 when the site can be served, else print why not in one line."
    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        """Raise CommandError, naming the database, if it cannot be reached or is not this site's."""
        if connection.vendor == "postgresql":
            connection.settings_dict["OPTIONS"].setdefault("connect_timeout", CONNECT_TIMEOUT_S)
        databases.require_site()
        self.stdout.write(f"{databases.name()} can be served.")
