"""`manage.py benchapp`: the instrument from inside of a project that lists its app."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig

import pytest

from bench import paths


@pytest.fixture
def manage(new_project, tmp_path):
    """Runs the command of a project's manage.py in another folder; its environment has benchapp and Django."""
    project = new_project("INSTALLED_APPS += ['bench.serve.command']")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(project / ".venv")], check=True)
    site = next((project / ".venv").glob("lib/*/site-packages"))
    (site / "installed.pth").write_text(f"{sysconfig.get_path('purelib')}\n{paths.KIT}\n")
    inherited = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    env = {**inherited, "BENCHAPP_STATE": str(tmp_path / "state")}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        argv = [str(project / ".venv" / "bin" / "python"), str(project / "manage.py"), "benchapp", *words]
        return subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)

    run.project = project
    return run


def test_the_doctor_looks_at_the_project_of_that_manage_py(manage):
    done = manage("doctor", "--json")
    assert json.loads(done.stdout)["project"]["folder"] == str(manage.project), done.stderr


def test_options_and_exit_statuses_are_those_of_benchapp(manage):
    done = manage("verify", "no-such-stack", "--layer", "none")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no-such-stack" in done.stderr.splitlines()[-1]
    assert manage("compare").returncode != 0
