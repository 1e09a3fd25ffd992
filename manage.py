#!/usr/bin/env python
"""Django's command line for the site: ./manage.py help."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run a management command; settings that cannot be used end in one line, not in a traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
    except ImportError as error:
        sys.exit(f"manage.py: {error}: activate the virtual environment, or run `make` once to create it")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"manage.py: {error}")


if __name__ == "__main__":
    main()
