"""Remove what the probes' writes have left behind, when the site that should have removed it was gone."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from probes import rows


class Command(BaseCommand):
    """Removes authors whose name only a probe gives, with their posts and comments; nothing else."""

    help = "Remove authors, posts and comments that probes have made and nobody has removed; says how many authors."
    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        self.stdout.write(f"{rows.remove_all()} removed")
