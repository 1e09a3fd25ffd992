"""Hosts with a real sshd at the end of real links: probed, loaded until a link is full, and left without a trace."""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import asdict

import pytest

from bench.measure.hosts import loaders, loaders_guards
from bench.measure.hosts.loaders import Loader
from bench.measure.load import Job
from bench.measure.load.engine import ClosedLoopTool
from bench.measure.run.guards import Observed
from bench.serve.production import inventory
from bench.serve.production.inventory import Host, Inventory
from bench.verify.hosts import reach
from bench.verify.hosts.sampling import sampling
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
    found = reach.probe_hosts(known)
    assert {item.host.name: item.lacks for item in found} == dict.fromkeys(("front1", "web1", "load1"), ())
    # One clock for all: what is measured is how well offsets are.
    assert all(abs(item.clock.ahead_ms) <= item.clock.error_ms for item in found)


def test_a_full_link_is_named(known):
    load, front = named(known, "load1"), named(known, "front1")
    tool, job = ClosedLoopTool(), Job(f"http://{front.address}:8080", ("/",), 4, 3)
    argv = front.argv(f"exec python3 -c '{SITE}'")
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as site, sampling(known) as sampler:
        assert site.stdout.readline() == "ready\n"
        (share,) = loaders.make((load,), job, ready=sampler.start)
        costs = sampler.stop()
        site.kill()
    seen = Observed(share.figures(tool))
    found = loaders_guards.evaluate(tool, seen, [share], costs, {"tool": 0.9})
    assert re.fullmatch(r"the link of (front|load)1 is full: \d+\.\d of 10 Mbit/s", found["tool"])


def test_a_lost_connection_leaves_nothing_on_a_load_host(known):
    """As after a kill of the controller: its end of the connection is gone."""
    load = named(known, "load1")

    def running() -> str:
        return subprocess.run(load.argv("pgrep -c python"), capture_output=True, text=True).stdout.strip()

    assert running() == "0"
    job = asdict(Job("http://127.0.0.1:9", ("/",), 10, 60, rate=5))
    with Loader(load) as loader:
        loader.greet()
        loader.prepare({**job, "threads": 2, "own": [0, 1]})
        loader.begin(time.time())
        # The waiting parent and its processes.
        until(lambda: running() == "3", "it makes load")
        loader.kill()
        until(lambda: running() == "0", "nothing of it is left")
