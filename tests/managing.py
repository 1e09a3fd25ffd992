"""`manage.py`, as a site owner runs it."""

from __future__ import annotations

import os
import subprocess
import sys

from django.conf import settings


def manage(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """`manage.py` with these arguments, in this environment and these variables."""
    return subprocess.run(
        [sys.executable, "manage.py", *map(str, arguments)],
        cwd=settings.BASE_DIR,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=180,
    )


def manage_on(url: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The same on the database of a URL, in production's mode."""
    return manage(*arguments, DATABASE_URL=url, DEBUG="0")
