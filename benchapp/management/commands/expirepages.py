"""Keep the files of the staticgenerator layer no older than the time to live."""

from __future__ import annotations

import signal
import threading
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from benchapp.caching.staticgenerator import Pages

# Between two sweeps pages may take more room than they may for long.
LONGEST_INTERVAL_S = 30


class Command(BaseCommand):
    """Runs beside the servers until it is told to stop, or once from a timer."""

    help = (
        "Remove pages on disk before they are older than BENCHAPP_CACHE_SECONDS, and the oldest of what is more than "
        "BENCHAPP_STATICGENERATOR_MB; runs until SIGTERM."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="remove what is too old now, say how much, and end")

    def handle(self, **options: Any) -> None:
        if not settings.BENCHAPP_STATICGENERATOR_ROOT:
            raise CommandError("the layer is off: set BENCHAPP_STATICGENERATOR_ROOT to the directory of its pages")
        pages = Pages(Path(settings.BENCHAPP_STATICGENERATOR_ROOT))
        if options["once"]:
            removed, kept = pages.expire(settings.BENCHAPP_CACHE_SECONDS, most_bytes())
            self.stdout.write(f"{removed} removed, {kept} kept in {pages.root}")
        else:
            expire_until_told(pages, settings.BENCHAPP_CACHE_SECONDS)


def expire_until_told(pages: Pages, seconds: int) -> None:
    """Sweep ten times within the time to live, or oftener, removing what would outlive it before the next sweep."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    interval = min(seconds / 10, LONGEST_INTERVAL_S)
    while not stop.wait(interval):
        pages.expire(seconds - interval, most_bytes())


def most_bytes() -> int | None:
    """How much all pages together may take between two sweeps; None when that is not limited."""
    return settings.BENCHAPP_STATICGENERATOR_MB * 1_048_576 or None
