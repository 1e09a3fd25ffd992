"""The survey: what there is and what can run here, with versions that are read once."""

from __future__ import annotations

import collections
import importlib.metadata
import json
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench import paths, programs
from bench.serve.catalog import catalog, compatibility
from bench.serve.deployment.survey import _read_versions, missing_web_server, versions
from tests.cases import for_files, resolved


def test_programs_print_their_version_once_and_side_by_side(monkeypatch):
    calls: collections.Counter[tuple[str, ...]] = collections.Counter()
    two = threading.Barrier(2)

    def version(argv):
        calls[argv] += 1
        # A program is started while another has printed nothing yet.
        two.wait(timeout=60)
        return "1.2"

    monkeypatch.setattr(programs, "version", version)
    one, other = (catalog.read().services[name] for name in ("memcached", "redis"))
    monkeypatch.setattr(compatibility, "version_command", lambda item: (item.name,))
    with ThreadPoolExecutor(2) as threads:
        _read_versions(threads, [one, other, one])
    assert calls == {("memcached",): 1, ("redis",): 1}


def test_python_servers_are_not_started_for_their_version(monkeypatch):
    monkeypatch.setattr(programs, "version", lambda argv: "started")
    by_name = versions([resolved("gunicorn"), resolved("uvicorn")], "none")
    assert by_name == {name: importlib.metadata.version(name) for name in ("gunicorn", "uvicorn")}


def test_versions_are_those_of_the_servers_services_and_database_of_a_case(monkeypatch):
    monkeypatch.setattr(programs, "version", lambda argv: "1.2")
    monkeypatch.setattr(programs, "find", lambda *where: Path("/bin/true"))
    by_name = versions([for_files("nginx-uwsgi")], "sqlite")
    assert by_name == {"uwsgi": "1.2", "nginx": "1.2", "sqlite": sqlite3.sqlite_version}


def test_without_a_web_server_the_one_of_most_stacks_is_named_with_its_installation(monkeypatch):
    monkeypatch.setattr(programs, "find", lambda names, *where: None)
    assert missing_web_server() == "nginx: `apt-get install nginx` installs it on Debian and Ubuntu"


def test_one_usable_web_server_is_enough(monkeypatch):
    monkeypatch.setattr(programs, "find", lambda names, *where: Path("/bin/true") if "caddy" in names else None)
    assert missing_web_server() == ""


def test_a_web_server_without_its_module_is_not_usable(monkeypatch):
    monkeypatch.setattr(programs, "find", lambda names, *where: Path("/bin/true") if "apache2" in names else None)
    monkeypatch.setattr(programs, "module", lambda globs: None)
    assert missing_web_server().startswith("nginx: ")


def test_the_help_imports_no_command():
    code = (
        "import json, sys\nfrom bench.cli import main\nmain.parser().format_help()\n"
        "print(json.dumps([name for name in sys.modules if name.startswith('bench.')]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=paths.KIT, capture_output=True, text=True, check=True)
    assert set(json.loads(done.stdout)) == {"bench.cli", "bench.cli.hints", "bench.cli.main", "bench.errors"}
