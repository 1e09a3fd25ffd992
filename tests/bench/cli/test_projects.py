"""A project that cannot be served or measured: one line with advice, exit status 2, and an unchanged folder."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bench import paths, programs
from bench.cli import main as command_line
from bench.serve.project import run_command
from tests.projects import tree

# Each starts several programs.
pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("own_var")]

BROWSE = "[tool.benchapp.workloads.browse]\n"
# Another version of Python with a virtual environment into which nothing can be installed.
OTHER_PYTHON = """#!/bin/sh
case "$*" in
*json*) exec {python} "$@" | sed 's/"version": "[0-9.]*"/"version": "3.99"/' ;;
*venv*) for folder; do :; done; mkdir -p "$folder/bin"; cp "$0" "$folder/bin/python" ;;
*) echo "ERROR: No matching distribution found for granian" >&2; exit 1 ;;
esac
"""
DOWN = """
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "shop", "HOST": "127.0.0.1", "PORT": "9"}}
"""
RUN = ("run", "--stack", "gunicorn", "--layer", "none", "--workload", "browse")
UP = ("up", "gunicorn")
VERIFY = ("verify", "gunicorn", "--layer", "none")


def refused(capsys: pytest.CaptureFixture[str], folder: Path, *words: str) -> str:
    """The last line of a command that leaves nothing behind."""
    before, left = tree(folder), files_left()
    status = command_line.main([*words, "--project", str(folder)])
    captured = capsys.readouterr()
    assert (status, captured.out) == (2, ""), captured.err
    assert tree(folder) == before
    assert files_left() == left
    *progress, line = captured.err.strip().splitlines()
    assert not [each for each in progress if not each.endswith("(once)")]
    assert line.startswith(f"benchapp {words[0]}: ") and "Traceback" not in captured.err
    return line.partition(": ")[2]


# It is imported until the test has seen what is printed meanwhile.
SLOW = """
import time
while not (BASE_DIR / "seen").exists():
    time.sleep(0.05)
"""


@pytest.mark.parametrize(
    "command",
    [
        ("doctor",),
        ("list",),
        ("render", "gunicorn", "--output", "out"),
        ("run", "gunicorn", "--layer", "none", "--dry-run"),
        ("faults", "gunicorn", "--fault", "worker", "--dry-run"),
    ],
    ids=lambda it: it[0],
)
def test_a_terminal_shows_what_is_done_while_the_project_is_looked_at(new_project, tmp_path, command):
    folder = new_project(SLOW, "[tool.benchapp]\nsettings = 'shop.settings'\n")
    terminal, its = os.openpty()
    argv = [sys.executable, "-m", "bench", *command, "--project", str(folder)]
    env = {**os.environ, "PYTHONPATH": str(paths.KIT), "TERM": "xterm"}
    with subprocess.Popen(argv, cwd=tmp_path, env=env, stdin=its, stdout=its, stderr=its) as process:
        os.close(its)
        shown = b""
        while not re.search(rb"looking at|reading its settings", shown):
            shown += os.read(terminal, 1024)
        (folder / "seen").touch()
        with contextlib.suppress(OSError):
            while os.read(terminal, 65536):
                pass
    os.close(terminal)
    assert process.returncode in (0, 1)


def files_left() -> set[Path]:
    """Contents of the test's temporary directory, and files of the kit except its caches."""
    files = {path for path in paths.STATE.rglob("*") if path.is_file() and not {"venv", "servers"} & set(path.parts)}
    kept = {path for path in files if path.name == "environment.json" or path.name.endswith("lock")}
    return {*files - kept, *Path(tempfile.gettempdir()).iterdir()}


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """A separate temporary directory, without files of other programs."""
    (folder := tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))


@pytest.mark.parametrize(
    "words",
    [UP, ("render", "gunicorn", "--local")],
    ids=lambda words: words[0],
)
def test_a_folder_that_not_every_server_can_work_in(capsys, new_project, tmp_path, words):
    folder = new_project().rename(tmp_path / "a folder \u2713")
    to = ["--output", str(tmp_path / "out")] if words[0] == "render" else []
    message = "not every server can work in a folder with a space \u2713 in its name; use another"
    assert refused(capsys, folder, *words, *to) == f"{folder}: {message}"
    assert not (tmp_path / "out").exists()


def test_a_folder_that_not_every_server_can_work_in_is_a_finding_of_doctor(capsys, new_project, tmp_path):
    folder = new_project().rename(tmp_path / "a folder")
    assert command_line.main(["doctor", "--project", str(folder)]) == 1
    output = " ".join(capsys.readouterr().out.split())
    assert f"not every server can work in a folder with a space in its name: {folder}" in output


def test_settings_that_hang_are_reported_and_given_up(capsys, new_project, monkeypatch):
    folder = new_project("import time\ntime.sleep(600)")
    monkeypatch.setattr(run_command, "SILENT_S", 0.2)
    # Enough for manage.py to say its settings on a busy machine.
    monkeypatch.setattr(run_command, "IMPORT_TIMEOUT_S", 4)
    assert command_line.main([*UP, "--project", str(folder)]) == 2
    waiting, line = capsys.readouterr().err.splitlines()
    assert waiting == f"waiting for shop.settings of {folder}, up to 4 s"
    message = "shop.settings and its pages are not ready within 4 s; see where ./manage.py check hangs"
    assert line == f"benchapp up: {folder}: {message}"


def test_a_database_that_is_down(capsys, new_project):
    line = refused(capsys, folder := new_project(DOWN), *VERIFY)
    assert line.startswith(f"{folder}: its database cannot be used: OperationalError: ") and "refused" in line
    assert line.endswith("; start it, or name another with --database")


def without_servers(folder):
    """A Python of a version for which no server can be installed."""
    python = folder / "python3.99"
    python.write_text(OTHER_PYTHON.format(python=sys.executable))
    python.chmod(0o755)
    return python


def test_a_python_without_the_kits_servers(capsys, new_project, tmp_path, monkeypatch):
    find = programs.find
    # uv does not take the stand-in for a Python.
    monkeypatch.setattr(
        programs, "find", lambda names, *more, **how: None if names == ["uv"] else find(names, *more, **how)
    )
    folder = new_project(description=f'[tool.benchapp]\npython = "{without_servers(tmp_path)}"\n')
    assert refused(capsys, folder, *UP) == (
        "the servers cannot be installed for Python 3.99: ERROR: No matching distribution found for granian; "
        "name another as python in [tool.benchapp]"
    )
    assert not (paths.STATE / "servers" / "3.99").exists(), "half an environment is left"


@pytest.mark.parametrize(
    "words",
    [UP, VERIFY, (*RUN[:-2], "--output"), ("faults", "gunicorn", "--output")],
    ids=lambda words: words[0],
)
def test_a_health_page_that_redirects(capsys, new_project, tmp_path, words):
    results = tmp_path / "results"
    words = [*words, str(results)] if words[-1] == "--output" else words
    # The project is examined before servers are installed, which takes longer.
    python = without_servers(tmp_path)
    folder = new_project(description=f'[tool.benchapp]\nhealth = "/old/"\npython = "{python}"\n')
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write("from django.views.generic import RedirectView\n")
        urls.write("urlpatterns.append(path('old/', RedirectView.as_view(url='/')))\n")
    assert refused(capsys, folder, *words) == (
        f'{folder}: GET /old/ redirects to /; name a page that returns status 200: health = "/..." in '
        "[tool.benchapp] of pyproject.toml"
    )
    assert not results.exists()


def test_what_is_left_out_of_a_recording_is_reported_with_its_count(capsys, new_project):
    folder = new_project(description=f'{BROWSE}log = "visits"\n')
    line = '127.0.0.1 - - [22/Nov/2026:12:00:00 +0000] "GET /{} HTTP/1.1" 200 10 "-" "-"\n'
    (folder / "visits").write_text("".join(map(line.format, ("", "?token=1", "?api-key=2", "?page=3"))))
    assert command_line.main([*RUN, "--dry-run", "--project", str(folder)]) == 0
    note = "note: left out of visits: requests that look like a secret (2)"
    assert note in capsys.readouterr().out.splitlines()


def test_settings_for_production_are_chosen_before_they_are_rendered(capsys, new_project, tmp_path):
    folder = new_project()
    (folder / "shop" / "dev.py").write_text("from shop.settings import *\n")
    (folder / "shop" / "production.py").write_text("from shop.settings import *\n")
    manage = folder / "manage.py"
    manage.write_text(manage.read_text().replace("shop.settings", "shop.dev"))
    words = ["render", "nginx-gunicorn", "--output", str(tmp_path / "out")]
    assert "there is shop.production, too; write settings = " in refused(capsys, folder, *words)
    (folder / "pyproject.toml").write_text('[tool.benchapp]\nsettings = "shop.production"\n')
    assert command_line.main([*words, "--project", str(folder)]) == 0
    assert "note: SECRET_KEY (shop/settings.py:" in capsys.readouterr().err


def test_a_render_of_an_unsafe_layer_says_so_and_what_to_take(new_project, tmp_path, capsys):
    folder = new_project()
    for layer, is_unsafe in (("site-middleware", True), ("page-cache", False)):
        to = ["--output", str(tmp_path / layer)]
        assert command_line.main(["render", "nginx-gunicorn", "--layer", layer, "--project", str(folder), *to]) == 0
        assert ("note: site-middleware: " in (err := capsys.readouterr().err)) is is_unsafe
        assert ("page-cache is recommended" in err) is is_unsafe
