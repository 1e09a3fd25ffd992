"""`python -m bench` and `manage.py` on systems that cannot run them: one line with advice."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from bench import __main__ as entry
from bench import paths

TO_DO = "activate the virtual environment, or run `make venv` once to create it"


@pytest.mark.parametrize(
    ("words", "status", "module"),
    [(["-m", "bench", "list"], 2, r"\w+"), (["manage.py", "check"], 1, "django")],
    ids=["bench", "manage"],
)
def test_outside_the_virtual_environment_one_line_says_what_to_do(words, status, module):
    # -S leaves out the packages of the environment.
    done = subprocess.run([sys.executable, "-S", *words], cwd=paths.KIT, capture_output=True, text=True, timeout=180)
    name = "benchapp" if "bench" in words else "manage.py"
    assert done.returncode == status
    assert re.fullmatch(rf"{name}: No module named '{module}': {re.escape(TO_DO)}\n", done.stderr), done.stderr


def test_an_old_python_prints_which_one_is_needed(monkeypatch, capsys):
    monkeypatch.setattr(sys, "version_info", (3, 9, 2, "final", 0))
    assert entry.run() == 2
    message = f"benchapp: this is Python 3.9.2, and 3.11 or newer is needed: {TO_DO}\n"
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("name", ["bench/__init__.py", "bench/__main__.py", "manage.py"])
def test_an_old_python_can_read_the_file_that_says_so(name):
    tree = ast.parse((paths.KIT / name).read_text("utf-8"), feature_version=(3, 7))
    first = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.name for node in first if isinstance(node, ast.Import) for alias in node.names}
    assert names <= {"os", "sys"}


def test_the_target_that_makes_the_environment_is_listed():
    done = subprocess.run(["make", "help"], cwd=paths.KIT, capture_output=True, text=True, timeout=180)
    assert re.search(r"^venv +make the virtual environment, \.venv$", done.stdout, re.M)


def test_a_missing_module_of_the_instrument_itself_is_a_fault(monkeypatch):
    monkeypatch.setitem(sys.modules, "bench.cli.main", None)
    with pytest.raises(ModuleNotFoundError):
        entry.run()
