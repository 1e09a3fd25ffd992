"""Other Pythons: found by version or path, refused in one line, each with an environment that is made once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench import paths, programs
from bench.errors import BenchError
from bench.serve.catalog import catalog
from bench.serve.deployment.case import CannotRun, resolve
from bench.serve.project import pythons, venv_overlay
from bench.serve.project.venv_overlay import VenvOverlay
from tests.cases import kit, resolved

OWN = programs.VERSION


def interpreter(folder: Path, version: str) -> Path:
    """A program that says it is a Python of this version."""
    path = folder / f"python{version}"
    message = f'"version": "{version}", "prefix": "/x", "base_prefix": "/x", "sites": ["/x/site-packages"]'
    path.write_text(f"#!/bin/sh\necho '{{{message}}}'\n")
    path.chmod(0o755)
    return path


def silent(path: Path) -> Path:
    """A program that says nothing and fails, as a shim of pyenv for a version that is not chosen."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def on_path(tmp_path, monkeypatch) -> Path:
    """A folder, the only one on PATH except for the system's; no environment was made yet."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(paths, "STATE", tmp_path / "var")
    return tmp_path


def test_a_python_is_found_by_version_and_by_path(on_path, monkeypatch):
    there = interpreter(on_path, "3.77")
    interpreter(on_path, "3.78")
    calls = []
    monkeypatch.setattr(pythons, "environment", lambda *which: calls.append(which))
    assert pythons.choose([str(there), "3.78"]) == ("3.77", "3.78")
    # Nothing else remembers the path: from now on the version is this environment's.
    assert calls == [("3.77", there)]


def test_an_environment_of_other_requirements_is_made_again_by_the_python_it_is_of(on_path, monkeypatch):
    elsewhere = on_path / "elsewhere"
    elsewhere.mkdir()
    there = interpreter(elsewhere, "3.77")
    bin_folder = on_path / "var" / "servers" / "3.77" / "bin"
    calls, real = [], venv_overlay._run

    def run(argv, *words):
        if "-c" in argv:
            return real(argv, *words)
        calls.append(argv)
        for folder in ("bin", "lib/python3.77/site-packages"):
            (bin_folder.parent / folder).mkdir(parents=True, exist_ok=True)
        (bin_folder / "python").unlink(missing_ok=True)
        (bin_folder / "python").symlink_to(there)
        return ""

    run([])
    monkeypatch.setattr(venv_overlay, "_run", run)
    monkeypatch.setattr(venv_overlay, "_run_shown", run)
    # It is on no PATH: it was named by its path before.
    environment = pythons.environment.__wrapped__("3.77")
    assert str(there) in calls[1]
    assert environment.venv == bin_folder.parent


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["3.79"], "--python 3.79: no python3.79 runs on PATH; give the path of an interpreter"),
        (["pypy"], "--python pypy: no pythonpypy runs on PATH; give the path of an interpreter"),
        (["/nowhere/python"], "--python /nowhere/python: no such file"),
        (["3.10"], "--python 3.10: Python 3.10 is too old for the site; use 3.11 or newer"),
        (["3.77", "3.77"], "--python 3.77: Python 3.77 is named twice; name one of each version"),
        (["{path}/silent"], "{path}/silent: cannot be run: exit status 1; name another with --python"),
    ],
)
def test_what_cannot_serve_is_one_line(on_path, words, message):
    for version in ("3.10", "3.77"):
        interpreter(on_path, version)
    silent(on_path / "silent")
    with pytest.raises(BenchError) as error:
        pythons.choose([word.format(path=on_path) for word in words])
    assert str(error.value) == message.format(path=on_path)


def test_a_version_of_pyenv_is_found_though_its_shim_does_not_run(on_path, monkeypatch):
    silent(on_path / "shims" / "python3.77")
    there = on_path / "versions" / "3.77.1" / "bin"
    there.mkdir(parents=True)
    interpreter(there, "3.77")
    monkeypatch.setenv("PATH", f"{on_path}/shims:/usr/bin:/bin")
    assert pythons.choose(["3.77"]) == ("3.77",)


def test_the_instrument_s_own_version_has_its_environment():
    assert pythons.environment(OWN).venv == paths.VENV
    assert pythons.described(OWN).startswith(f"{sys.implementation.name.replace('cpython', 'CPython')} {OWN}.")


def test_a_variant_names_its_python_and_no_value():
    stack = catalog.read().stack("nginx-uwsgi@processes=2,python=3.13")
    assert (stack.python, stack.values["processes"], "python" in stack.values) == ("3.13", 2, False)
    for wrong in ("3", "3.13.1", "new"):
        with pytest.raises(BenchError, match=r"write a version such as python=3\.13$"):
            catalog.read().stack(f"nginx-uwsgi@python={wrong}")


@pytest.fixture
def another(tmp_path, monkeypatch) -> Path:
    """The environment of Python 3.77, with only gunicorn."""
    venv = tmp_path / "3.77"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "gunicorn").write_text("#!/bin/sh\n")
    (venv / "bin" / "gunicorn").chmod(0o755)
    monkeypatch.setattr(pythons, "environment", lambda version: VenvOverlay(venv, venv, (), venv))
    return venv


def test_servers_are_those_of_the_python_that_is_named(another, monkeypatch):
    monkeypatch.setenv("PATH", f"{paths.VENV}/bin:/usr/bin")
    case = resolved("gunicorn@python=3.77")
    assert case.programs["gunicorn"] == another / "bin" / "gunicorn"
    # Not the instrument's own, though its environment is activated.
    missing = resolve(kit(), "cherokee-uwsgi@python=3.77")
    assert isinstance(missing, CannotRun) and missing.reason.startswith("program not installed: uwsgi;")
    assert resolved("gunicorn").programs["gunicorn"] == paths.VENV / "bin" / "gunicorn"


def test_a_module_of_one_python_is_none_of_another(another):
    if programs.find(["apache2", "httpd"]) is None:
        pytest.skip("program not installed: apache2 or httpd")
    assert resolve(kit(), "apache-modwsgi@python=3.77") == CannotRun(
        "apache has its module wsgi for one Python, which is not 3.77"
    )


def test_a_case_is_served_by_it_and_its_database_is_filled_by_the_instruments_own(another):
    project = resolved("gunicorn@python=3.77").project
    assert project.python == another / "bin" / "python"
    assert project.notes == ()
    assert project.by_the_instrument.python == paths.PYTHON
    assert kit().python == paths.PYTHON
    assert kit().served_by("") is kit()
