"""benchapp-status: what is wrong on a host is seen, by a line, by JSON and by the exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.serve.production import one_host
from tests.cases import production
from tests.deploy.certificates import issue
from tests.skips import needs

# What the host's commands say where all is well.
WELL = {
    "systemctl": 'case "$*" in *ActiveState*) echo active;; *Result*) echo success;; esac',
    "benchapp-check": ":",
    "apt-get": "echo 'Inst vim [1] (2 Debian:12.1/stable [amd64])'",
    "curl": ":",
}
FAULTS = {
    "a unit ended": (
        "units",
        "critical",
        {"systemctl": 'case "$*" in *nginx*) echo failed;; *Result*) echo success;; *) echo active;; esac'},
    ),
    "an old file": ("units", "warning", {"benchapp-check": "echo benchapp-nginx"}),
    "a failed backup": (
        "jobs",
        "critical",
        {"systemctl": 'case "$*" in *Result*) echo exit-code;; *) echo active;; esac'},
    ),
    "a site without database": ("site", "critical", {"curl": "echo 'curl: (22) 503' >&2; exit 22"}),
    "a security update": (
        "updates",
        "warning",
        {"apt-get": "echo 'Inst vim [1] (2 Debian-Security:12/stable [amd64])'"},
    ),
    "no package lists": ("updates", "unknown", {"apt-get": "echo 'E: broken'; exit 100"}),
}


class Host:
    """A folder with the script, and with what it reads."""

    def __init__(self, folder: Path, days: int = 60):
        self.folder = folder
        one_host.write(production("nginx-gunicorn"), folder / "out")
        for name in ("programs", "data/backups", "releases/20261128-1", "tls"):
            (folder / name).mkdir(parents=True)
        (folder / "current").symlink_to("releases/20261128-1")
        (folder / "data/backups/one.sqlite3").touch()
        issue(folder / "tls", ("example.org",), days)
        for name, script in WELL.items():
            self.says(name, script)
        text = (folder / "out/benchapp-status").read_text()
        for place, own in (
            ("/etc/benchapp/tls", "tls"),
            ("/var/lib/benchapp", "data"),
            ("/srv/benchapp/current", "current"),
            ("/run/reboot-required", "reboot-required"),
            ("/etc/benchapp/maintenance", "maintenance"),
        ):
            assert place in text
            text = text.replace(f'"{place}', f'"{folder}/{own}')
        (folder / "status.py").write_text(text)

    def says(self, name: str, script: str) -> None:
        path = self.folder / "programs" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def run(self, *words: str) -> tuple[int, str]:
        env = {"PATH": f"{self.folder / 'programs'}:{os.environ['PATH']}"}
        done = subprocess.run(
            [sys.executable, self.folder / "status.py", *words], env=env, capture_output=True, text=True
        )
        assert done.stderr == ""
        return done.returncode, done.stdout

    def checks(self) -> dict[str, str]:
        """The state of each part."""
        status, output = self.run("--json")
        document = json.loads(output)
        states = {name: check["state"] for name, check in document["checks"].items()}
        assert status == {"ok": 0, "warning": 1, "critical": 2, "unknown": 3}[document["state"]]
        return states


@pytest.fixture
def host(tmp_path) -> Host:
    needs("openssl")
    return Host(tmp_path)


def test_a_host_where_all_is_well(host):
    status, output = host.run()
    assert status == 0
    lines = {line.split()[1]: line.split()[0] for line in output.splitlines()}
    assert lines == dict.fromkeys(("units", "jobs", "release", "site", "certificate", "backup", "updates"), "ok")
    assert "20261128-1" in output
    assert host.checks() == lines


@pytest.mark.parametrize(("part", "state", "programs"), FAULTS.values(), ids=FAULTS)
def test_what_is_wrong_is_seen_and_nothing_else(part, state, programs, host):
    for name, script in programs.items():
        host.says(name, script)
    wrong = {name: reported for name, reported in host.checks().items() if reported != "ok"}
    assert wrong == {part: state}


@pytest.mark.parametrize(("hours", "state"), [(29, "ok"), (31, "warning"), (55, "critical")])
def test_a_backup_grows_old(hours, state, host):
    then = time.time() - hours * 3600
    os.utime(host.folder / "data/backups/one.sqlite3", (then, then))
    assert host.checks()["backup"] == state


@pytest.mark.parametrize(("days", "state"), [(22, "ok"), (20, "warning"), (5, "critical"), (-1, "critical")])
def test_a_certificate_runs_out(days, state, tmp_path):
    needs("openssl")
    assert Host(tmp_path, days).checks()["certificate"] == state


def test_maintenance_is_no_failure(host):
    host.says("curl", "exit 22")
    (host.folder / "maintenance").touch()
    assert host.checks()["site"] == "warning"


def test_without_backup_or_release_it_says_so(host):
    (host.folder / "data/backups/one.sqlite3").unlink()
    (host.folder / "current").unlink()
    wrong = {name: reported for name, reported in host.checks().items() if reported != "ok"}
    assert wrong == {"release": "critical", "backup": "warning"}
