"""Make, change and remove rows of probes like requests, from a process outside of the site's workers."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.http import Http404

from bench.serve.inside.site import rows


class Command(BaseCommand):
    """Invalidates cached pages like any other write; rows of no probe stay."""

    help = "Make, change or remove an author with a post and comments; prints what pages must show now."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("make", help="a new author with one post and one comment")
        write = actions.add_parser("write", help="change the rows of an author that probes have made")
        write.add_argument("author", type=int, help="the author's number")
        write.add_argument("what", choices=sorted(rows.WRITES), help="the write")
        actions.add_parser("remove", help="all that probes have made and not removed, as when the site was stopped")

    def handle(self, *, action: str, **options: Any) -> None:
        try:
            if action == "make":
                done = rows.created()
            elif action == "write":
                done = rows.written(options["author"], options["what"])
            else:
                done = {"removed": rows.remove_all()}
        except Http404:
            raise CommandError(f"author {options['author']}: no probe has made it") from None
        self.stdout.write(json.dumps(done))
