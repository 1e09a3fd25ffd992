"""Advice printed with a render: values without effect, a cache too large."""

from __future__ import annotations

import pytest

from bench.serve.catalog import catalog, values
from bench.serve.production import advice
from tests.cases import for_files


@pytest.mark.parametrize(
    ("layer", "form"),
    [
        *((layer, "systemd") for layer in ("nginx-memcached", "fragments", "varnish", "uwsgi-cache")),
        # There, files are in memory.
        *((layer, "compose") for layer in ("nginx-microcache", "staticgenerator")),
    ],
)
def test_a_cache_that_fills_the_size_is_refused(tmp_path, bench, layer, form):
    words = ("nginx-uwsgi", "--format", form, "--layer", layer)
    words = (*words, "--size", "bronze", "--output", tmp_path / "out")
    run = bench("render", *words)
    message = "size bronze has 256 MB for all, and the cache may take 256 MB of them; --set cache_memory_mb=64"
    assert (run.returncode, run.stderr) == (2, f"benchapp render: {message}\n")
    assert bench("render", *words, "--set", "cache_memory_mb=64").returncode == 0


@pytest.mark.parametrize("change", ["http2=off", "web_processes=7", "http_port=8080"])
def test_a_value_that_no_server_has_is_refused(tmp_path, bench, change):
    name, files = change.partition("=")[0], tmp_path / "out"
    run = bench("render", "gunicorn", "--set", change, "--output", str(files))
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == (
        f"benchapp render: --set {name}: it changes no file of gunicorn with layer none; "
        "leave it out, or choose a stack whose servers have it\n"
    )
    assert not files.exists()


def test_a_file_of_values_says_which_of_them_do_nothing(tmp_path, bench):
    (tmp_path / "mine.toml").write_text('processes = 7\nhttp2 = "off"\n', "utf-8")
    out = tmp_path / "out"
    run = bench("render", "gunicorn", "--values", str(tmp_path / "mine.toml"), "--output", str(out))
    assert run.returncode == 0
    assert run.stdout.splitlines()[-1] == str(out / "INSTALL.md")
    assert run.stderr == "note: http2: it changes no file of gunicorn with layer none\n"


@pytest.mark.parametrize(
    ("stack", "change"),
    [
        ("nginx-gunicorn", "http2=off"),
        ("gunicorn", "hsts_seconds=7"),  # of the site's environment
        ("nginx-gunicorn", "http_port=1081"),  # of the unit's capabilities
        ("gunicorn", "threads=4"),  # what the stack has by itself
    ],
)
def test_a_value_that_something_has_is_not_idle(stack, change):
    usual = catalog.read().values["production"]
    changed = usual.changed(dict([values.parse_change(change)]))
    assert advice.idle_changes(for_files(stack, values=changed), usual) == []
