"""What `make bench` asks for: rounds within what is left of its time."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from bench import paths


@pytest.fixture
def budget(tmp_path):
    """The value of --budget that `make bench` gives with these variables; nothing is installed or measured."""
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    (tmp_path / "venv" / ".installed").touch()

    def ask(*variables: str) -> str:
        argv = ["make", "bench", f"VENV={tmp_path}/venv", f"RUN_DIR={tmp_path}/run", *variables]
        inherited = {name: value for name, value in os.environ.items() if name not in ("BUDGET", "MAKEFLAGS")}
        done = subprocess.run(argv, cwd=paths.PROJECT, capture_output=True, text=True, check=True, env=inherited)
        return re.search(r"--budget (\S+)", done.stdout)[1]

    return ask


def test_what_came_before_the_rounds_is_taken_off_their_time(budget):
    assert 200 < int(budget().removesuffix("s")) <= 230
    assert budget("ENDS=0") == "1s"


def test_a_budget_that_is_given_stays(budget):
    assert budget("BUDGET=10m") == "10m"
