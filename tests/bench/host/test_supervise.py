"""Starting, waiting and stopping, with real programs."""

from __future__ import annotations

import collections
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from bench import paths
from bench.errors import BenchError, DeploymentError
from bench.host import orphans, ports, supervise
from bench.host.identity import worker
from bench.host.supervise import Address

SERVER = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(int(sys.argv[2])); self.end_headers()
    def log_message(self, *args): pass
if os.fork() == 0: import time; time.sleep(600)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def started(tmp_path):
    """Starts programs and stops what a test leaves."""
    processes = []

    def start(*argv: str) -> supervise.Process:
        identity = worker(tmp_path)
        process = supervise.start(
            "it",
            [sys.executable, *argv],
            env=dict(os.environ),
            cwd=Path("/"),
            log=tmp_path / "it.log",
            identity=identity,
        )
        processes.append(process)
        return process

    yield start
    supervise.stop(processes)


def members(session: int) -> list[int]:
    """The processes of a session, the zombies aside."""
    found = []
    for process in psutil.process_iter(["status"]):
        try:
            if os.getsid(process.pid) == session and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except ProcessLookupError:
            continue
    return found


def wait_until(condition, timeout_s=10):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


def test_a_server_is_awaited_and_stopped_with_its_workers(started):
    port = ports.free_port()
    process = started("-c", SERVER, str(port), "200")
    address = Address("127.0.0.1", port)
    supervise.wait_accepting(process, address, 10)
    supervise.wait_healthy([process], f"http://{address.text}", "/healthz", 10)
    assert len(members(process.pid)) == 2
    supervise.stop([process])
    assert members(process.pid) == []
    assert not address.accepts()


def test_a_server_that_dies_is_reported_with_its_last_line(started, tmp_path):
    process = started("-c", "import sys; sys.exit('no such thing: x')")
    with pytest.raises(DeploymentError) as caught:
        supervise.wait_accepting(process, Address("127.0.0.1", ports.free_port()), 10)
    assert str(caught.value) == f"it exited with status 1: no such thing: x; see {tmp_path / 'it.log'}"


def test_a_server_that_never_listens_is_given_up(started):
    process = started("-c", "import time; print('still loading', flush=True); time.sleep(600)")
    wait_until(lambda: supervise.last_line(process.log) == "still loading")
    address = Address("127.0.0.1", ports.free_port())
    with pytest.raises(DeploymentError, match=rf"it did not listen on {address.text} within 0.2 s: still loading"):
        supervise.wait_accepting(process, address, 0.2)


def test_a_server_that_answers_wrongly_is_given_up(started):
    port = ports.free_port()
    process = started("-c", SERVER, str(port), "503")
    supervise.wait_accepting(process, Address("127.0.0.1", port), 10)
    with pytest.raises(DeploymentError, match=r"it answered 503 to GET /healthz within 0\.5 s"):
        supervise.wait_healthy([process], f"http://127.0.0.1:{port}", "/healthz", 0.5)


def test_a_program_that_ignores_the_signal_is_killed(started):
    text = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(600)"
    )
    process = started("-c", text)
    wait_until(lambda: supervise.last_line(process.log) == "on")
    supervise.stop([process], timeout_s=0.3)
    assert members(process.pid) == []


OWNER = """
import os, sys
from pathlib import Path
from bench import paths
from bench.host import orphans, supervise
from bench.host.identity import worker
paths.VAR = Path(sys.argv[1])
scratch = Path(sys.argv[2]); scratch.mkdir()
register = orphans.Register(scratch)
identity = worker(scratch.parent)
process = supervise.start("it", [sys.executable, "-c", sys.argv[3]], env=dict(os.environ), cwd=Path("/"),
                          log=scratch / "it.log", identity=identity)
register.add(process.pid)
print(process.pid, flush=True)
sys.stdin.read()
"""
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0: time.sleep(600)
time.sleep(600)
"""


def test_what_a_killed_instrument_leaves_is_cleaned_up(tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    argv = [sys.executable, "-c", OWNER, str(tmp_path / "var"), str(scratch), STUBBORN]
    owner = subprocess.Popen(argv, cwd=paths.PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    session = int(owner.stdout.readline())
    try:
        wait_until(lambda: len(members(session)) == 2)
        monkeypatch.setattr(paths, "VAR", tmp_path / "var")
        assert orphans.clean() == 0, "what runs is left alone"
        assert len(members(session)) == 2
        owner.kill()
        owner.wait()
        assert orphans.clean() == 1
        wait_until(lambda: members(session) == [])
        assert not scratch.exists()
        assert orphans.clean() == 0
    finally:
        owner.kill()
        owner.communicate()
        for pid in members(session):
            os.kill(pid, signal.SIGKILL)


def test_a_stranger_with_the_same_number_is_left_alone(tmp_path, monkeypatch, started):
    process = started("-c", "import time; time.sleep(600)")
    monkeypatch.setattr(paths, "VAR", tmp_path)
    (tmp_path / "run").mkdir()
    entry = {"owner": [2**22 + 5, 1.0], "scratch": str(tmp_path / "none"), "processes": [[process.pid, 12345.0]]}
    (tmp_path / "run" / "x.json").write_text(json.dumps(entry))
    assert orphans.clean() == 1
    assert process.died() is None


def test_an_unknown_user_is_named(monkeypatch):
    if os.geteuid() != 0:
        pytest.skip("only root chooses a user")
    monkeypatch.setenv("BENCH_USER", "nobody-of-that-name")
    worker.cache_clear()
    try:
        with pytest.raises(BenchError, match="BENCH_USER=nobody-of-that-name: no such user on this machine"):
            worker()
    finally:
        monkeypatch.undo()
        worker.cache_clear()


def test_started_as_root_a_worker_is_an_ordinary_user_of_the_same_python(tmp_path):
    identity = worker(tmp_path)
    text = "import os, sys; print(os.geteuid() == 0, sys.version.split()[0], sys.base_prefix)"
    done = subprocess.run([*identity.prefix, sys.executable, "-c", text], capture_output=True, text=True, cwd="/")
    assert done.stdout.split() == ["False", sys.version.split()[0], sys.base_prefix], done.stderr


def test_a_free_port_is_no_clients_and_nobody_elses():
    given = [ports.free_port() for _ in range(20)]
    assert len(set(given)) == 20
    assert not set(given) & set(ports.ephemeral())
    # Another instrument is not given a port that this one was, though no server has bound it yet.
    ask = f"from bench.host import ports; print([ports._promise(port) for port in {given}])"
    other = subprocess.run([sys.executable, "-c", ask], cwd=paths.PROJECT, capture_output=True, text=True)
    assert other.stdout.strip() == str([None] * 20)


def test_who_has_ended_is_known_and_strangers_are_left_alone():
    ask = "from bench.host import orphans; print(orphans.owner())"
    ended = subprocess.run(
        [sys.executable, "-c", ask], cwd=paths.PROJECT, capture_output=True, text=True
    ).stdout.strip()
    assert orphans.is_gone(ended)
    assert not orphans.is_gone(orphans.owner())
    assert not orphans.is_gone(f"elsewhere {ended.partition(' ')[2]}")
    assert not orphans.is_gone("somebody")


def test_a_port_given_long_ago_is_no_longer_promised(monkeypatch):
    monkeypatch.setattr(ports, "_promised", collections.deque())
    monkeypatch.setattr(ports, "PROMISES", 2)
    first, second, third = (ports.free_port() for _ in range(3))
    retaken = [ports._promise(port) for port in (first, second, third)]
    assert [promise is not None for promise in retaken] == [True, False, False]
    for promise in [retaken[0], *ports._promised]:
        promise.close()
