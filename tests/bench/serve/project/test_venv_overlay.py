"""Layered environments: servers of the kit and packages of a project in one process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench import paths
from bench.errors import BenchError, GlobalFault
from bench.serve.machine.lock import exclusive
from bench.serve.project import venv_overlay


def package(site: Path, name: str, version: str) -> None:
    """An installed package, as far as its metadata go, with a module that names its place."""
    info = site / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (site / f"{name}.py").write_text(f"WHERE = {str(site)!r}\n")


@pytest.fixture
def project_python(tmp_path) -> Path:
    """The interpreter of a project's virtual environment that has another package called cheroot."""
    venv = tmp_path / "project" / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    package(next(venv.glob("lib/*/site-packages")), "cheroot", "11.0")
    return venv / "bin" / "python"


def test_the_project_s_packages_come_first_and_the_kit_s_are_there(tmp_path, project_python):
    before = sorted(str(path) for path in (tmp_path / "project").rglob("*"))
    overlay = venv_overlay.environment(project_python, tmp_path / "var")
    code = "import sys, cheroot, granian, benchapp.caching, benchapp_overlay; print(cheroot.WHERE, sys.prefix)"
    done = subprocess.run(
        [overlay.venv / "bin" / "python", "-B", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [overlay.sites[0], str(overlay.venv)]
    assert (overlay.venv / "bin" / "granian").read_text().startswith(f"#!{overlay.venv}/bin/python\n")
    assert sorted(str(path) for path in (tmp_path / "project").rglob("*")) == before, (
        "the project's environment changed"
    )


def test_the_servers_for_another_python_are_installed_by_one_command_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "STATE", tmp_path)
    held = tmp_path / "servers" / "3.99.lock"

    def install(*_):
        with pytest.raises(GlobalFault), exclusive(held, "the servers", 0):
            pass

    monkeypatch.setattr(venv_overlay, "_install", install)
    venv_overlay.kit_venv(venv_overlay.PythonFacts("3.99", "", "", ()), Path(sys.executable))
    assert held.is_file()


def test_a_clone_of_the_kit_hides_no_package_of_the_project(tmp_path):
    # The kit's own interpreter has the clone on its path.
    python = venv_overlay.environment(paths.PYTHON, tmp_path / "var").python
    (tmp_path / "config").mkdir()
    code = "import benchapp, bench, config; print(*config.__path__)"
    done = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path / 'config'}\n"
    # One that is served itself is on the path by another way.
    own = {"PYTHONPATH": str(paths.KIT)}
    done = subprocess.run([python, "-c", code], cwd=tmp_path, env=own, capture_output=True, text=True, check=True)
    assert done.stdout == f"{paths.KIT / 'config'}\n"


def test_it_is_made_once(tmp_path, project_python):
    overlay = venv_overlay.environment(project_python, tmp_path / "var")
    (overlay.venv / "mark").touch()
    assert venv_overlay.environment(project_python, tmp_path / "var").venv == overlay.venv
    assert (overlay.venv / "mark").exists()


def test_an_interpreter_that_cannot_be_run_is_one_line(tmp_path):
    with pytest.raises(BenchError) as error:
        venv_overlay.environment(tmp_path / "python", tmp_path / "var")
    message = "cannot be run: No such file or directory; name another as python in [tool.benchapp]"
    assert str(error.value) == f"{tmp_path}/python: {message}"
