"""Print one real URL of every kind of page, for checks from outside."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Prints nothing of a project that has no probes of its own; theirs take precedence."""

    help = "Print one real URL of every kind that checks ask for."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object instead of a line for each")

    def handle(self, **options: Any) -> None:
        urls = self.urls()
        if options["json"]:
            self.stdout.write(json.dumps(urls, indent=2))
        else:
            self.stdout.write("\n".join(f"{kind:<20} {url}" for kind, url in urls.items()))

    def urls(self) -> dict[str, str]:
        """URLs by kind."""
        return {}
