"""Change the rows of a probe's author as a request would, from a process that is no worker of the site."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.http import Http404

from bench.inside.site import rows


class Command(BaseCommand):
    """Writes once; cached pages are invalidated as by any other write."""

    help = "Change the rows of an author that probes have made; prints what pages must show now."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("author", type=int, help="the author's number")
        parser.add_argument("what", choices=sorted(rows.WRITES), help="the write")

    def handle(self, *, author: int, what: str, **options: Any) -> None:
        try:
            self.stdout.write(json.dumps(rows.written(author, what)))
        except Http404:
            raise CommandError(f"author {author}: no probe has made it") from None
