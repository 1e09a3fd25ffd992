"""`[places]` of a values file: every rendered file follows them, and what would break one is refused."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace

import pytest

from bench.serve.catalog import catalog
from bench.serve.production import one_host
from tests.bench.serve.production.test_one_host import NOTE, lines_of
from tests.cases import for_files


def test_behind_a_balancer_the_port_of_https_is_noted(tmp_path, bench):
    done = bench("render", "gunicorn", "--set", "listener=behind", "--output", tmp_path / "o")
    said = "note: listener=behind: plain HTTP on port 443; another is `port` under [places] of a values file\n"
    assert (done.returncode, done.stderr) == (0, said)
    own = tmp_path / "own.toml"
    own.write_text('base = "production"\nlistener = "behind"\n[places]\nport = 8000\n')
    done = bench("render", "gunicorn", "--values", own, "--output", tmp_path / "p")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("place", "odd"), [("data", "/data/site data"), ("conf", "/etc/a;b"), ("tls", '/etc/"tls')])
def test_a_place_that_breaks_a_file_is_refused(place, odd, tmp_path, bench):
    own = tmp_path / "own.toml"
    own.write_text(f"base = 'production'\n[places]\n{place} = '{odd}'\n")
    done = bench("render", "nginx-gunicorn", "--values", own, "--output", tmp_path / "o")
    assert (done.returncode, done.stderr.count("\n"), f"places.{place}" in done.stderr) == (2, 1, True)
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("data", "state"),
    [("/var/lib/benchapp", "benchapp"), ("/var/lib/sites/shop", "sites/shop"), ("/srv/data/shop", "")],
)
def test_every_file_follows_the_directory_of_the_data(tmp_path, data, state):
    """systemd makes one below /var/lib and lets its units write there; another it would not know."""
    usual, out = catalog.read().values["production"], tmp_path / "out"
    chosen = replace(usual, places={**usual.places, "data": data})
    one_host.write(for_files("nginx-gunicorn", values=chosen), out)
    texts = {path.name: path.read_text() for path in out.rglob("*") if path.is_file()}
    for name in ("benchapp-gunicorn.service", "benchapp-clearsessions.service"):
        assert lines_of(texts[name], "StateDirectory") == ([state] if state else [])
        assert (f"ReadWritePaths={data}" in texts[name].splitlines()) == (not state)
    for name in ("benchapp-check", "benchapp-manage", "benchapp-restore"):
        assert set(re.findall(r"StateDirectory=(\S+)", texts[name])) == ({state} if state else set())
        assert subprocess.run(["sh", "-n", str(out / name)]).returncode == 0
    assert (f"d {data} 0750 benchapp-app benchapp-app -" in texts["tmpfiles.conf"]) == (not state)
    assert f"sqlite:///{data}/site.sqlite3" in texts[NOTE]
    if data != usual.places["data"]:
        assert not [name for name, text in texts.items() if re.search(r"/var/lib/benchapp(?![\w-])", text)]
