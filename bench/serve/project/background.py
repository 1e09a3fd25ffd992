"""Workers and jobs of a project: programs beside its servers, `[tool.benchapp.workers]` and `[tool.benchapp.jobs]`.

A command is written as in the project's folder: `manage.py db_worker`, or `celery -A mysite worker`, a program of one
of the project's packages.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path

from bench import programs
from bench.errors import BenchError
from bench.serve.project.opened import OVERLAY, UnderTest

MANAGE = "manage.py"
PYTHON = re.compile(r"python[\d.]*")


def on_host(project: UnderTest, command: str, venv: str) -> list[str]:
    """The words of a command on a production host, with the virtual environment of the release."""
    settings = project.project.settings
    if project.overlaid:
        settings = OVERLAY
    program, *words = _by_python(command, f"{venv}/bin/python", settings)
    if "/" not in program:
        program = f"{venv}/bin/{program}"
    return [program, *words]


def unit_words(words: Iterable[str]) -> str:
    """Words for ExecStart= of a unit, without expansion.

    https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html#Command%20lines
    """
    return shlex.join(words).replace("%", "%%").replace("$", "$$")


def here(project: UnderTest, worker: str, command: str) -> list[str]:
    """The words of a worker's command on this machine; raises BenchError for a missing program."""
    program, *words = _by_python(command, str(project.python), project.settings)
    if "/" in program:
        return [program, *words]
    return [*_program(project, program, worker), *words]


def _by_python(command: str, python: str, settings: str) -> list[str]:
    """The words of a command, with the interpreter if Python runs the command.

    settings  the module for a command of manage.py: some manage.py set another one
    """
    words = shlex.split(command)
    if PYTHON.fullmatch(words[0]):
        words = words[1:]
        if words[0] != MANAGE:
            return [python, *words]
    if words[0] in (MANAGE, f"./{MANAGE}"):
        # Without its folder: Python then resolves the link to the release, and imports nothing from the next one.
        return [python, MANAGE, *words[1:], f"--settings={settings}"]
    return words


def _program(project: UnderTest, name: str, worker: str) -> list[str]:
    """The words that run a program of the project's packages; with the servers' environment for a program in Python."""
    venvs = (project.project.python.parent.parent, *project.servers_in)
    program = programs.find([name], (), venvs)
    if program is None:
        raise BenchError(f"worker {worker}: program not installed: {name}; install it beside the project's packages")
    with Path(program).open("rb") as file:
        first = file.readline()
    in_python = first.startswith(b"#!") and b"python" in first
    if in_python:
        return [str(project.python), str(program)]
    return [str(program)]
