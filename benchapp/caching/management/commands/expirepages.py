"""Remove the files of the layer `staticgenerator` before the end of their time to live."""

from __future__ import annotations

import signal
import threading
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from benchapp.caching import registry
from benchapp.caching.conf import app_settings
from benchapp.caching.stores.files import Sweeper, active_store


class Command(BaseCommand):
    """Runs beside the servers until SIGTERM, or once from a timer."""

    help = (
        "Remove pages on disk before they are older than BENCHAPP_CACHE_SECONDS, and the oldest pages above "
        "CACHING_STATICGENERATOR_MAX_MB; runs until SIGTERM."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--once", action="store_true", help="remove what is too old now, print the numbers, and end"
        )

    def handle(self, **options: Any) -> None:
        if not registry.is_active("staticgenerator"):
            raise CommandError("the layer is off: set CACHING_STATICGENERATOR_ROOT to the directory of its pages")
        pages = active_store()
        if options["once"]:
            removed, stay = pages.expire(app_settings.CACHING_SECONDS)
            self.stdout.write(f"{removed} removed, {stay} stay in {pages.root}")
        else:
            sweep_until_stopped(Sweeper(pages, app_settings.CACHING_SECONDS))


def sweep_until_stopped(sweeper: Sweeper) -> None:
    """Sweep at least ten times within the time to live, until SIGTERM."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    while not stop.wait(sweeper.interval_s):
        sweeper.sweep()
