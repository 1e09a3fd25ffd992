"""Remove the files of the layer `staticgenerator` before they are older than the time to live."""

from __future__ import annotations

import signal
import threading
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from benchapp.caching import registry
from benchapp.caching.conf import app_settings
from benchapp.caching.stores.files import FileStore, active_store

# Between two sweeps the pages may exceed the limit of their room.
MAX_INTERVAL_S = 30


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
        max_bytes = registry.options("staticgenerator").get("max_mb", 0) * 1_048_576 or None
        if options["once"]:
            removed, stay = pages.expire(app_settings.CACHING_SECONDS, max_bytes)
            self.stdout.write(f"{removed} removed, {stay} stay in {pages.root}")
        else:
            expire_until_stopped(pages, app_settings.CACHING_SECONDS, max_bytes)


def expire_until_stopped(pages: FileStore, seconds: int, max_bytes: int | None) -> None:
    """Sweep at least ten times within the time to live; each sweep removes what the next would find too old."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    interval = min(seconds / 10, MAX_INTERVAL_S)
    while not stop.wait(interval):
        pages.expire(seconds - interval, max_bytes)
