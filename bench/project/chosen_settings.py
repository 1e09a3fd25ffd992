"""Which settings a project's manage.py chooses: it is run to the point where Django takes over."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

from bench import paths
from bench.errors import BenchError
from bench.project import run_command

SCRIPT = paths.PROJECT / "bench" / "inside" / "chosen_settings.py"


def ask(folder: Path, python: Path, env: dict[str, str]) -> dict[str, str]:
    """The variables that manage.py sets: DJANGO_SETTINGS_MODULE, and what goes with it where it is set.

    Raises BenchError, in one line with what to do, when it sets no settings or cannot be run.
    """
    with tempfile.TemporaryDirectory(prefix="benchapp-settings-") as scratch:
        answer = Path(scratch) / "chosen.json"
        inherited = {name: os.environ[name] for name in (*run_command.INHERITED, "HOME") if name in os.environ}
        try:
            done = subprocess.run(
                [str(python), str(SCRIPT), str(answer)],
                cwd=folder,
                env={**inherited, **env, "PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=run_command.IMPORT_TIMEOUT_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BenchError(f"{folder / 'manage.py'}: {python} cannot run it: {error}; {_NAME_THEM}") from None
        found = json.loads(answer.read_bytes()) if answer.is_file() else {}
    if "DJANGO_SETTINGS_MODULE" not in found:
        last = run_command.problem(done.stderr) or "it sets no DJANGO_SETTINGS_MODULE"
        raise BenchError(f"{folder / 'manage.py'}: {last}; {_remedy(last, python)}")
    return {name: value for name, value in found.items() if value}


_NAME_THEM = 'write settings = "..." into [tool.benchapp] of pyproject.toml'


def _remedy(error: str, python: Path) -> str:
    if "django" not in error.lower() or "Error" not in error:
        return _NAME_THEM
    return (
        'install it there, or name the interpreter that has it: python = "..." in [tool.benchapp] of pyproject.toml; '
        f"{python} was tried"
    )
