"""A release of Debian is a target: its words, its packages and its programs, whatever is installed here."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from bench import programs
from bench.cli.list import as_text
from bench.serve.catalog import catalog, compatibility, values
from bench.serve.deployment import render
from bench.serve.deployment.survey import survey
from tests.cases import kit


def _started(unit: str) -> str:
    """The program that a unit starts."""
    return re.search(r"(?m)^ExecStart=(\S+)", unit)[1]


@pytest.mark.parametrize(
    ("release", "title", "cache", "listen", "directive"),
    [
        (12, "Debian 12 (bookworm)", "redis-server", "0.0.0.0:443 ssl http2 backlog=1024", False),
        (13, "Debian 13 (trixie)", "valkey-server", "0.0.0.0:443 ssl backlog=1024", True),
    ],
)
def test_files_are_for_the_release_that_the_values_name(rendered, release, title, cache, listen, directive):
    texts = rendered("nginx-gunicorn", "view-cache", debian=release, cache="redis")
    assert _started(texts["systemd/benchapp-redis.service"]) == f"/usr/bin/{cache}"
    lines = [line.strip() for line in texts["nginx.conf"].splitlines()]
    assert f"listen {listen};" in lines
    assert ("http2 on;" in lines) == directive
    assert any(line.startswith("ssl_ecdh_curve X25519MLKEM768:X25519:") for line in lines) == directive
    note = texts["INSTALL.md"]
    assert title in note
    installed = next(line.split() for line in texts["benchapp-install"].splitlines() if "apt-get install" in line)
    assert {"redis-server", "valkey-server"} & set(installed) == {cache}


@pytest.mark.parametrize("release", values.CHOICES["debian"])
def test_varnish_is_what_debian_calls_it(rendered, release):
    texts = rendered("nginx-gunicorn", "varnish", debian=release)
    unit = texts["systemd/benchapp-varnish.service"]
    assert _started(unit) == "/usr/sbin/varnishd"
    assert "\nExecReload=/usr/share/varnish/varnishreload " in unit
    assert "varnish" in shlex.split(
        next(line for line in texts["benchapp-install"].splitlines() if "apt-get install" in line)
    )


@pytest.mark.parametrize(
    ("program", "named"),
    [("varnishd", ["varnishstat", "/usr/share/varnish/varnishreload"]), ("vinyld", ["vinylstat", "vinylreload"])],
)
def test_here_varnish_is_what_is_installed(program, named):
    """Vinyl Cache has its programs under other names."""
    server = catalog.read().layers["varnish"].servers[0]
    context = {"program": f"/usr/sbin/{program}", "run": "/run", "conf": "/etc"}
    commands = (server.entries, server.reload.configuration)
    assert [render.argv(words, context, "varnish")[0] for words in commands] == named


def test_list_says_which_releases_there_are():
    listing = survey(kit())
    assert listing["releases"].keys() == {str(release) for release in values.CHOICES["debian"]}
    assert "trixie: systemd 257, Python 3.13, nginx 1.26," in as_text(listing, 120)


def test_a_release_that_is_no_target_is_refused(tmp_path, bench):
    done = bench("render", "gunicorn", "--set", "debian=11", "--output", str(tmp_path / "out"))
    assert (done.returncode, done.stderr) == (2, "benchapp render: --set debian=11: use 12 or 13\n")


def test_every_stack_takes_the_release(tmp_path, bench):
    words = ("--set", "debian=13", "--format", "compose", "--output", str(tmp_path / "out"))
    done = bench("render", "gunicorn", *words)
    note, last = done.stderr.splitlines()
    assert (done.returncode, "SQLite" in note, last.endswith("out/INSTALL.md")) == (0, True, True)
    assert "-slim-trixie" in (tmp_path / "out" / "Containerfile").read_text()


@pytest.mark.parametrize("there", [{"valkey-server"}, {"redis-server"}, {"redis-server", "valkey-server"}, set()])
def test_here_the_service_is_the_one_that_is_installed(tmp_path, monkeypatch, there):
    monkeypatch.setattr(programs, "find", lambda names, *_: next((Path(name) for name in names if name in there), None))
    service = compatibility.as_installed(catalog.read().service("redis"))
    assert service.programs == {"redis": "valkey-server" if there == {"valkey-server"} else "redis-server"}
