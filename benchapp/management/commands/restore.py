"""Put a backup of the database back."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from benchapp.caching.invalidation import all_pages, invalidate
from benchapp.management import backup


class Command(BaseCommand):
    """All of the database becomes what it was; cached pages are invalidated."""

    help = "Replace the content of the database with a backup that `backup` made."
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--force", action="store_true", help="also where the database has rows, which are lost")

    def handle(self, file: Path, force: bool, **options: Any) -> None:
        backup.put_back(file, force=force)
        invalidate(all_pages())
        self.stdout.write(f"The database is that of {file.name}.")
