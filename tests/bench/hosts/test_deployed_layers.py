"""What each kind of layer promises on several web hosts, deployed by the playbook and proved on the hosts."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from bench import paths, programs
from tests.bench.hosts.deployed_world import NEEDED, deployed
from tests.bench.hosts.world import require_possible

pytestmark = [pytest.mark.hosts, pytest.mark.servers]
# Short, for a write is waited for until a page that it made stale has expired.
EXPIRES = {"cache_seconds": 4}
# The one who asks is on the host of the front, as those who end TLS before it are elsewhere.
BEHIND = {"listener": "behind", "trusted_proxies": "127.0.0.1/32 10.213.0.0/24"}
CASES = [
    ("nginx-uwsgi", "uwsgi-cache", EXPIRES),
    ("nginx-uwsgi", "nginx-microcache", EXPIRES),
    ("nginx-uwsgi", "nginx-memcached", {}),
    # At each host itself, too: it speaks HTTP.
    ("nginx-gunicorn", "nginx-microcache", EXPIRES),
    ("nginx-gunicorn", "none", {}),
    ("nginx-uwsgi", "varnish", BEHIND),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    require_possible(*NEEDED)
    stack, layer, changes = CASES[0]
    with deployed(tmp_path_factory.mktemp("world"), stack, layer, **changes) as made:
        yield made


@pytest.mark.parametrize(
    ("stack", "layer", "changes"), CASES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_the_layer_promises_is_proved(world, stack, layer, changes):
    if layer == "varnish" and programs.find(["varnishd"]) is None:
        pytest.skip("program not installed: varnishd")
    there = world.with_layer(stack, layer, **changes)
    done = there.play()
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    argv = [sys.executable, "-m", "bench", "verify", "--inventory", world.path, stack, "--layer", layer, "--json"]
    argv += [word for name, value in changes.items() for word in ("--set", f"{name}={value}")]
    done = subprocess.run(argv, cwd=paths.PROJECT, capture_output=True, text=True)
    assert done.stdout, done.stderr
    outcomes = json.loads(done.stdout)["outcomes"]
    assert ([item for item in outcomes if not item["ok"] or item["not_tried"]], done.returncode) == ([], 0)
    assert {item["check"] for item in outcomes} >= {"hosts-fresh", "hosts-apart", "hosts-cookies"}
