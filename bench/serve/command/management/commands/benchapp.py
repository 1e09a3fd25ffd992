"""Doctor, serve or verify this project: `manage.py benchapp up` is `benchapp up` in the folder of manage.py."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser


class Command(BaseCommand):
    """The instrument for the project of this manage.py, in another process, which imports no Django."""

    help = "Look at this project, serve it by any stack, or verify it. The words after the command are for benchapp."
    # The doctor says what is wrong.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the command of benchapp and all words after the command."""
        parser.add_argument("benchapp", choices=("doctor", "up", "verify"), metavar="doctor | up | verify")
        parser.add_argument("words", nargs=argparse.REMAINDER, metavar="...", help="as for benchapp")

    def handle(self, *_: Any, **options: Any) -> None:
        """Become that command of benchapp."""
        project = ["--project", str(Path(sys.argv[0]).resolve().parent)]
        # Without -P a folder of the project could be taken for the instrument.
        argv = [sys.executable, "-P", "-m", "bench", options["benchapp"], *project, *options["words"]]
        sys.stdout.flush()
        os.execv(sys.executable, argv)
