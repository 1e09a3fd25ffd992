"""Check that the site can be served as it is configured, before a server is started."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import Error, connection

from benchapp import page_index
from benchapp.management import databases
from fixtures import load

# An unreachable host is reported after this many seconds; the operating system would wait for two minutes.
CONNECT_TIMEOUT_S = 5


class Command(BaseCommand):
    """Running it reads the settings; then it tries the database. A problem is one line without secrets."""

    help = "Try the settings and the database: exit 0 when the site can be served, else print why not in one line."
    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        """Raise CommandError, naming the database, when it cannot be reached or is not this site's."""
        if connection.vendor == "postgresql":
            connection.settings_dict["OPTIONS"].setdefault("connect_timeout", CONNECT_TIMEOUT_S)
        try:
            with databases.reading() as cursor:
                load.check_tables(cursor, connection.vendor, page_index)
        except load.Refused as error:
            raise CommandError(f"{databases.name()}: {error}") from None
        except (Error, connection.Database.Error) as error:
            next_step = "" if connection.connection else "; see that it runs and that DATABASE_URL is right"
            raise CommandError(f"{databases.name()}: {databases.reason(error)}{next_step}") from error
        self.stdout.write(f"{databases.name()} can be served.")
