"""Say whether the site could be served as it is set up, before anybody starts a server for it."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import Error, connection

from benchapp import counted, databases
from fixtures import load

# A host that does not answer is named after this many seconds, not after the two minutes of the operating system.
CONNECT_TIMEOUT_S = 5


class Command(BaseCommand):
    """Reads the settings by being run at all, then tries the database; what is wrong is one line without secrets."""

    help = "Try the settings and the database: exit 0 when the site can be served, else say in one line why not."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The arguments of `sitecheck`."""
        parser.add_argument("--settings-only", action="store_true", help="do not ask the database")

    def handle(self, **options: Any) -> None:
        """Raise CommandError, naming the database, when it cannot be reached or is not this site's."""
        if options["settings_only"]:
            return
        if connection.vendor == "postgresql":
            connection.settings_dict["OPTIONS"].setdefault("connect_timeout", CONNECT_TIMEOUT_S)
        try:
            with databases.reading() as cursor:
                load.must_fit(cursor, connection.vendor, counted)
        except load.Refused as error:
            raise CommandError(f"{databases.name()}: {error}") from None
        except (Error, connection.Database.Error) as error:
            next_step = "" if connection.connection else "; see that it runs and that DATABASE_URL is right"
            raise CommandError(f"{databases.name()}: {databases.reason(error)}{next_step}") from error
        self.stdout.write(f"{databases.name()} can be served.")
