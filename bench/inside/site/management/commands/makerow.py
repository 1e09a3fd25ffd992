"""Make a probe's author as a request would, from a process that is no worker of the site."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand

from bench.inside.site import rows


class Command(BaseCommand):
    """Makes an author with one post and one comment; `removeprobes` removes it."""

    help = "Make an author with one post and one comment; prints what pages must show now."
    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        self.stdout.write(json.dumps(rows.created()))
