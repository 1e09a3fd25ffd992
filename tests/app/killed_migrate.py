"""A program: run `migrate`, and be killed there: killed_migrate.py POINT."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import django


def kill(*args: Any, **options: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed_after(owner: Any, name: str) -> None:
    """Have the program end where this function has done its work."""
    original = getattr(owner, name)

    def wrapper(*args: Any, **options: Any) -> None:
        original(*args, **options)
        kill()

    setattr(owner, name, wrapper)


def main() -> None:
    django.setup()
    from django.core.management import call_command
    from django.db.migrations.executor import MigrationExecutor
    from django.db.migrations.recorder import MigrationRecorder

    from benchapp import page_index, page_triggers

    points = {
        "triggers dropped": (page_triggers, "drop"),
        "in a migration": (MigrationRecorder, "record_applied"),
        "between migrations": (MigrationExecutor, "apply_migration"),
        "all migrated": (MigrationExecutor, "migrate"),
        "triggers created": (page_triggers, "create"),
        "counted": (page_index, "fill"),
    }
    killed_after(*points[sys.argv[1]])
    call_command("migrate", verbosity=0)


if __name__ == "__main__":
    main()
