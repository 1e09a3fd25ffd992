"""Finding installed programs and asking them their version."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from bench import paths

# Distributions keep servers where an ordinary user's PATH does not look.
SYSTEM_DIRECTORIES = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def find(names: Iterable[str], search: Iterable[str] = ()) -> Path | None:
    """The first of `names` that is installed: in the virtual environment, on PATH, in the system's server
    directories, then in the `search` globs (the newest match first)."""
    more = [directory for pattern in search for directory in _newest_first(_glob(pattern))]
    places = [str(paths.VENV / "bin"), *os.environ.get("PATH", "").split(os.pathsep), *SYSTEM_DIRECTORIES, *more]
    for name in names:
        if found := shutil.which(name, path=os.pathsep.join(places)):
            return Path(found)
    return None


def module(globs: Iterable[str]) -> str | None:
    """The first file that one of the globs finds; `{{ venv }}` in a glob is the virtual environment."""
    for pattern in globs:
        if found := sorted(_glob(pattern.replace("{{ venv }}", str(paths.VENV)))):
            return found[0]
    return None


def _glob(pattern: str) -> list[str]:
    return [str(path) for path in Path("/").glob(pattern.lstrip("/"))]


def _newest_first(directories: list[str]) -> list[str]:
    return sorted(directories, key=lambda text: [int(n) for n in re.findall(r"\d+", text)], reverse=True)


@functools.cache
def version(argv: tuple[str, ...]) -> str | None:
    """The first dotted number that `argv` prints, or None when it prints none."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\d+(?:\.\d+)+", done.stdout + done.stderr)
    return match[0] if match else None
