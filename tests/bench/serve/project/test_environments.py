"""A project's interpreter is found wherever the tool that manages its packages put it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bench.serve.project import environments


def python_in(folder: Path) -> Path:
    """A virtual environment as far as it is looked at."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    (folder / "pyvenv.cfg").touch()
    return python


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder of a project in a folder of its repository."""
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    (tmp_path / "repository" / "back").mkdir()
    return tmp_path / "repository" / "back"


@pytest.mark.parametrize("place", ["back/.venv", "back/venv", ".venv"])
def test_an_environment_in_the_repository_is_that_of_the_project(project, place):
    python = python_in(project.parent / place)
    assert environments.interpreter(project) == python


def test_an_environment_that_uv_has_elsewhere_is_known(project, tmp_path, monkeypatch):
    python = python_in(tmp_path / "elsewhere")
    monkeypatch.setenv(environments.OF_UV, str(tmp_path / "elsewhere"))
    assert environments.interpreter(project) == python


def test_without_a_repository_it_is_also_beside_the_folder_of_the_project(tmp_path):
    folder = tmp_path / "work" / "mysite"
    folder.mkdir(parents=True)
    python_in(tmp_path / ".venv")
    assert environments.interpreter(folder) is None
    python = python_in(folder.parent / ".venv")
    assert environments.interpreter(folder) == python


def test_an_active_environment_is_that_of_the_project_unless_it_is_the_instrument_s(project, tmp_path, monkeypatch):
    monkeypatch.setenv(environments.ACTIVE, sys.prefix)
    assert environments.interpreter(project) is None
    active = python_in(tmp_path / "virtualenvs" / "shop")
    monkeypatch.setenv(environments.ACTIVE, str(active.parents[1]))
    assert environments.interpreter(project) == active
    own = python_in(project / ".venv")
    assert environments.interpreter(project) == own


@pytest.mark.parametrize(
    ("file", "text", "tool"),
    [
        ("poetry.lock", "", "poetry"),
        ("pyproject.toml", '[tool.poetry]\nname = "library"\n', "poetry"),
        ("Pipfile", "", "pipenv"),
    ],
)
@pytest.mark.parametrize("where", [".", ".."])
def test_the_tool_that_manages_the_packages_is_named(project, tmp_path, monkeypatch, file, text, tool, where):
    python = python_in(tmp_path / "cache" / "back-x1")
    (project / where / file).write_text(text)
    program = tmp_path / "bin" / tool
    program.parent.mkdir()
    # The active environment is the instrument's, of which these tools would speak.
    program.write_text(f'#!/bin/sh\n[ -z "${{VIRTUAL_ENV:-}}" ] || exit 1\necho {python}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("VIRTUAL_ENV", "/somewhere")
    assert environments.interpreter(project) == python
    (python.parents[1] / "pyvenv.cfg").unlink()
    assert environments.interpreter(project) is None


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("uv.lock", "run `uv sync` in {root}, or name"),
        ("poetry.lock", "run `poetry install` in {root}, or name"),
        ("Pipfile", "run `pipenv install` in {root}, or name"),
        (
            "requirements.txt",
            "run `{python} -m venv {root}/.venv && {root}/.venv/bin/pip install -r {root}/requirements.txt`",
        ),
        ("README.md", "install it there, or name"),
    ],
)
def test_what_makes_an_environment_is_reported(project, file, message):
    (project.parent / file).touch()
    taken = Path("/kit/python")
    assert environments.remedy(project, taken).startswith(message.format(root=project.parent, python=taken))
    python = python_in(project / ".venv")
    assert environments.remedy(project, python).startswith("install it there, or name")
