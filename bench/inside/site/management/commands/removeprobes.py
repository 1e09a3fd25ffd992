"""Remove the rows that probes have made and not removed, for example because the site was stopped meanwhile."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from bench.inside.site import rows


class Command(BaseCommand):
    """Removes authors that probes have made, with their posts and comments, and nothing else."""

    help = "Remove authors, posts and comments that probes have made; prints how many authors."
    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        self.stdout.write(f"{rows.remove_all()} removed")
