"""What a host's files make of the cache, the environment and the directory of the data that are asked for."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace

import pytest

from bench.catalog import catalog
from bench.production import host as one_host
from tests.cases import for_files


@pytest.mark.parametrize("value", ["a # b", "a\\b", "'a'", " a", "a\nb"])
def test_a_variable_that_systemd_would_change_is_refused(tmp_path, bench, value):
    words = ("gunicorn", "--values", "production", "--env", f"GREETING={value}", "--to", str(tmp_path / "out"))
    run = bench("render", *words)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert run.stderr.startswith("bench render: GREETING: its value begins or ends with")


@pytest.mark.parametrize(
    ("data", "state"),
    [
        ("/var/lib/benchapp", "benchapp"),
        ("/var/lib/sites/shop", "sites/shop"),
        ("/srv/data/shop", ""),
    ],
)
def test_every_file_follows_the_directory_of_the_data(tmp_path, data, state):
    """systemd makes one below /var/lib and lets its units write there; another it would not know."""
    usual, out = catalog.read().values["production"], tmp_path / "out"
    chosen = replace(usual, places={**usual.places, "data": data})
    one_host.write(for_files("nginx-gunicorn", values=chosen), out)
    texts = {path.name: path.read_text() for path in out.rglob("*") if path.is_file()}
    for name in ("benchapp-gunicorn.service", "benchapp-clearsessions.service"):
        lines = texts[name].splitlines()
        made = [line.partition("=")[2] for line in lines if line.startswith("StateDirectory=")]
        assert made == ([state] if state else [])
        assert (f"ReadWritePaths={data}" in lines) == (not state)
    for name in ("benchapp-check", "benchapp-manage"):
        assert set(re.findall(r"StateDirectory=(\S+)", texts[name])) == ({state} if state else set())
        assert subprocess.run(["sh", "-n", str(out / name)]).returncode == 0
    assert (f"d {data} 0750 benchapp-app benchapp-app -" in texts["tmpfiles.conf"]) == (not state)
    assert f"sqlite:///{data}/site.sqlite3" in texts["INSTALL.md"]
    if data != usual.places["data"]:
        assert not [name for name, text in texts.items() if re.search(r"/var/lib/benchapp(?![\w-])", text)]


@pytest.mark.parametrize(
    "words", [("nginx-gunicorn", "--set", "cache=redis"), ("nginx-gunicorn@cache=redis",)], ids=str
)
def test_the_cache_is_a_value_and_a_variant(tmp_path, bench, words):
    out = tmp_path / "out"
    run = bench("render", *words, "--layer", "view-cache", "--values", "production", "--to", str(out))
    assert (run.returncode, run.stderr) == (0, "")
    units = {path.stem for path in (out / "systemd").glob("*.service")}
    assert units == {"benchapp-gunicorn", "benchapp-nginx", "benchapp-redis"}
    assert "CACHE_URL=redis:///run/benchapp/redis.sock" in (out / "site.env").read_text().splitlines()


def test_the_cache_can_be_chosen_for_files_of_this_machine(tmp_path, bench):
    words = ("nginx-gunicorn", "--set", "cache=redis", "--layer", "view-cache", "--to", str(tmp_path / "out"))
    assert bench("render", *words).returncode == 0
