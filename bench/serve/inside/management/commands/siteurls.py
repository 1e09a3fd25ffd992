"""Print one real URL of every kind of page, for checks from outside."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Prints nothing for a project without probes; a project's own command takes precedence."""

    help = "Print one real URL of every kind that checks request, as a JSON object."
    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        self.stdout.write(json.dumps(self.urls(), indent=2))

    def urls(self) -> dict[str, str]:
        """URLs by kind."""
        return {}
