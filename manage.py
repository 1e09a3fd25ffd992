#!/usr/bin/env python
"""Django's command line for the site: ./manage.py help."""

from __future__ import annotations

import os
import sys

# What a shell expects of a program that ended with SIGINT.
INTERRUPTED = 130


def main() -> None:
    """Run a management command. Settings that cannot be used end in one line, without a traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        _run()
    except KeyboardInterrupt:
        # A command that has to undo something handles this itself; here the settings were still being read.
        print("manage.py: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


def _run() -> None:
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
    except ImportError as error:
        sys.exit(f"manage.py: {error}: activate the virtual environment, or run `make venv` once to create it")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"manage.py: {error}")


if __name__ == "__main__":
    main()
