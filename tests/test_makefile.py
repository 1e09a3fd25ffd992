"""The options of `make bench`: rounds within the rest of its time; and the build of mod_wsgi."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bench import paths


@pytest.fixture
def budget(tmp_path):
    """The value of --max-time that `make bench` gives with these variables; nothing is installed or measured."""
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    (tmp_path / "venv" / ".installed").touch()

    def max_time(*variables: str) -> str:
        argv = ["make", "bench", f"VENV={tmp_path}/venv", f"RUN_DIR={tmp_path}/run", *variables]
        inherited = {name: value for name, value in os.environ.items() if name not in ("BUDGET", "MAKEFLAGS")}
        done = subprocess.run(argv, cwd=paths.KIT, capture_output=True, text=True, check=True, env=inherited)
        return re.search(r"--max-time (\S+)", done.stdout)[1]

    return max_time


def test_what_came_before_the_rounds_is_taken_off_their_time(budget):
    assert 200 < int(budget().removesuffix("s")) <= 230
    assert budget("ENDS=0") == "1s"


def test_a_budget_that_is_given_stays(budget):
    assert budget("BUDGET=10m") == "10m"


def test_the_run_and_its_report_have_one_folder_whatever_second_it_is(tmp_path):
    seconds = tmp_path / "seconds"
    program(tmp_path / "date", f"echo x >> {seconds}; wc -l < {seconds}")
    path = f"{tmp_path}:{os.environ['PATH']}"
    inherited = {name: value for name, value in os.environ.items() if name not in ("RUN_DIR", "MAKEFLAGS")}
    command = ["make", "--dry-run", "bench", f"VENV={tmp_path}"]
    done = subprocess.run(
        command, cwd=paths.KIT, capture_output=True, text=True, check=True, env=inherited | {"PATH": path}
    )
    named = re.findall(r"results/quick-\d+", done.stdout)
    assert len(named) == 3
    assert len(set(named)) == 1


# Building it brings a command that names the module's place.
PYTHON = '#!/bin/sh\necho "$@"\ncase $* in *--force-reinstall*) mv "$0".built "${0%/*}"/mod_wsgi-express; esac\n'
BUILT = 'echo "$0"'
BUILDS = "--force-reinstall mod_wsgi>="


def program(path: Path, text: str = "") -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def make_output(tmp_path):
    """The output of `make` in an environment from before Apache was installed; its PATH is the directory `path`."""
    binaries, path = tmp_path / "venv" / "bin", tmp_path / "path"
    binaries.mkdir(parents=True)
    path.mkdir()
    for stamp in (".installed", ".installed-dev"):
        (binaries.parent / stamp).touch()
    program(binaries / "python", PYTHON)
    for name in ("date", "expr", "mv", "sed"):
        (path / name).symlink_to(shutil.which(name))
    argv = [shutil.which("make"), f"VENV={binaries.parent}"]

    def make(target: str) -> str:
        done = subprocess.run([*argv, target], cwd=paths.KIT, capture_output=True, text=True, env={"PATH": str(path)})
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    return make


@pytest.mark.parametrize("target", ["venv", "bench", "test-fast"])
def test_mod_wsgi_is_built_once_and_when_apache_is_there(make_output, tmp_path, target):
    program(tmp_path / "venv/bin/python.built", BUILT)
    assert BUILDS not in make_output(target)
    program(tmp_path / "path/apxs")
    assert BUILDS in make_output(target)
    assert BUILDS not in make_output(target)


def test_a_build_that_fails_is_reported_and_tried_again(make_output, tmp_path):
    program(tmp_path / "path/apxs")
    assert "make: mod_wsgi could not be built; its stacks will be skipped" in make_output("venv")
    program(tmp_path / "venv/bin/python.built", BUILT)
    output = make_output("venv")
    assert BUILDS in output and "could not" not in output
