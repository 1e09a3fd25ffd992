"""Hosts with a real sshd at the end of real links: probed, loaded until a link is full, and left without a trace."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from bench.measure.hosts import loaders, loaders_guards
from bench.measure.hosts.loaders import Loaders
from bench.measure.load import LoadJob
from bench.measure.load.engine import CLOSED_LOOP
from bench.measure.run.guards import Observed
from bench.serve.production import inventory
from bench.serve.production.inventory import Host, Inventory
from bench.verify.hosts import reach
from tests.bench.measure.hosts.test_loaders import CONTROLLER
from tests.bench.measure.hosts.world import members, require_possible, standing
from tests.waiting import until

pytestmark = pytest.mark.servers
HOSTS = members(front=["front1"], web=["web1"], load=["load1"])
SITE = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "200000")
        self.end_headers()
        self.wfile.write(bytes(200000))
    def log_message(self, *words):
        pass
server = ThreadingHTTPServer(("", 8080), Handler)
print("ready", flush=True)
server.serve_forever()
"""


@pytest.fixture(scope="module")
def known(tmp_path_factory) -> Inventory:
    require_possible()
    with standing(HOSTS, 10) as world:
        path = tmp_path_factory.mktemp("world") / "hosts.ini"
        path.write_text(world)
        yield inventory.read(path)


def named(known: Inventory, name: str) -> Host:
    (host,) = (host for host in known.hosts if host.name == name)
    return host


def test_hosts_that_lack_nothing_tell_their_time(known):
    probed = reach.probe_hosts(known)
    assert {item.host.name: item.lacks for item in probed} == dict.fromkeys(("front1", "web1", "load1"), ())
    # One clock for all: what is measured is how well offsets are.
    assert all(abs(item.clock.ahead_ms) <= item.clock.error_ms for item in probed)


def test_a_full_link_is_named(known):
    load, front = named(known, "load1"), named(known, "front1")
    tool, job = CLOSED_LOOP, LoadJob(f"http://{front.address}:8080", ("/",), 4, 3)
    argv = front.argv(f"exec python3 -c '{SITE}'")
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as site:
        assert site.stdout.readline() == "ready\n"
        with Loaders(known) as making:
            loaded = making.make(job, known.path.parent)
        site.kill()
    (share,) = loaded.shares
    assert share.host == load
    seen = Observed(loaders.figures(tool, [share]))
    findings = loaders_guards.evaluate(tool, seen, loaded.shares, loaded.costs, {"tool": 0.9})
    assert re.fullmatch(r"the link of (front|load)1 is full: \d+\.\d of 10 Mbit/s", findings["tool"])


def test_a_killed_controller_leaves_nothing_on_a_load_host(known):
    load, front = named(known, "load1"), named(known, "front1")

    def printed(script: str) -> str:
        return subprocess.run(load.argv(script), capture_output=True, text=True).stdout.strip()

    files = "find /root -type f"
    before = printed(files)
    assert printed("pgrep -c python") == "0"
    argv = [sys.executable, "-c", CONTROLLER, str(known.path), f"http://{front.address}:9"]
    with subprocess.Popen(argv) as controller:
        # The program and a process of it at least, not only the shells that start it.
        until(lambda: int(printed("pgrep -cf '^python3 .* load1 [0-9.]+$'") or 0) >= 2, "it makes load")
        controller.kill()
    until(lambda: printed("pgrep -c python") == "0", "nothing of it is left")
    assert printed(files) == before
