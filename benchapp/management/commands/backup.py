"""Make a backup of the database while the site serves."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from benchapp.management import backup

KEEP = 14


class Command(BaseCommand):
    """SQLite's own copy, or pg_dump."""

    help = "Write a backup of the database into a directory, and remove the oldest ones there."
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("directory", type=Path)
        parser.add_argument("--keep", type=_positive, default=KEEP, help=f"how many backups stay (default: {KEEP})")

    def handle(self, directory: Path, keep: int, **options: Any) -> None:
        self.stdout.write(str(backup.save(directory, keep)))


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: use a whole number, 1 or more")
    return int(text)
