"""Starting, waiting and stopping, with real programs."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from bench.errors import DeploymentError
from bench.serve.machine import http, ports, supervise
from bench.serve.machine.identity import worker
from bench.serve.machine.supervise import Address
from tests.bench.serve.machine.sessions import members
from tests.waiting import until

SERVER = """
import http.server, os, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(float(sys.argv[3]) if len(sys.argv) > 3 else 0)
        self.send_response(int(sys.argv[2])); self.end_headers()
    def log_message(self, *args): pass
if os.fork() == 0: time.sleep(600)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def started(tmp_path):
    """Starts programs and stops what a test leaves."""
    processes = []

    def start(*argv: str) -> supervise.Process:
        words, log = [sys.executable, *argv], tmp_path / "it.log"
        process = supervise.start(words, log, worker(tmp_path), env=dict(os.environ), cwd=Path("/"))
        processes.append(process)
        return process

    yield start
    supervise.stop(processes)


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


def test_a_warning_of_python_is_no_last_line(tmp_path):
    log = tmp_path / "server.log"
    warned = "/srv/shop/fields.py:9: UserWarning: a number should be one\n  warnings.warn('a number')\n"
    log.write_text("ValueError: no stage\n" + warned * 2)
    assert supervise.last_line(log) == "ValueError: no stage"
    log.write_text(warned)
    assert supervise.last_line(log) == "it wrote nothing"


def test_a_server_that_dies_is_reported_with_its_last_line(started, tmp_path):
    process = started("-c", "import sys; sys.exit('no such thing: x')")
    with pytest.raises(DeploymentError) as caught:
        supervise.wait_accepting(process, Address("127.0.0.1", ports.free_port()), 10)
    assert str(caught.value) == f"it exited with status 1: no such thing: x; see {tmp_path / 'it.log'}"


def test_a_server_that_gives_up_after_refused_settings_is_reported_with_their_fault(started, tmp_path):
    message = "django.core.exceptions.ImproperlyConfigured: SECRET_KEY is not set\\nWorker failed to boot"
    process = started("-c", f"import sys; sys.exit('{message}')")
    with pytest.raises(DeploymentError) as caught:
        supervise.wait_accepting(process, Address("127.0.0.1", ports.free_port()), 10)
    assert str(caught.value) == f"it exited with status 1: SECRET_KEY is not set; see {tmp_path / 'it.log'}"


@pytest.mark.parametrize(
    ("text", "seconds_ago", "message"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", 0, "it was killed by SIGKILL"),
        ("sys.exit(3)", 0, "it exited with status 3: ready"),
        ("sys.exit(3)", 60, "it exited with status 3"),
        ("os.abort()", 0, "it was killed by SIGABRT: ready"),
    ],
)
def test_only_last_words_are_the_cause_of_a_death(started, text, seconds_ago, message):
    """Not a line of an hour ago, nor the last before something else killed it."""
    process = started("-c", f"import os, signal, sys; print('ready', flush=True); {text}")
    process.popen.wait()
    written = time.time() - seconds_ago
    os.utime(process.log, (written, written))
    assert str(process.died()) == f"{message}; see {process.log}"
    os.utime(process.log)
    assert str(process.died()) == f"{message}; see {process.log}", "the same each time"


def test_the_words_of_its_predecessor_are_not_its_own(started):
    started("-c", "print('an older one')").popen.wait()
    again = started("-c", "import sys; sys.exit(1)")
    again.popen.wait()
    assert str(again.died()) == f"it exited with status 1; see {again.log}"


def test_a_server_that_never_listens_is_given_up(started):
    process = started("-c", "import time; print('still loading', flush=True); time.sleep(600)")
    until(lambda: supervise.last_line(process.log) == "still loading", "it is loading")
    address = Address("127.0.0.1", ports.free_port())
    with pytest.raises(
        DeploymentError, match=rf"it did not listen on {address.text} within 0.2 s; last in it.log: still loading"
    ):
        supervise.wait_accepting(process, address, 0.2)


def test_a_server_that_responds_wrongly_is_given_up(started):
    port = ports.free_port()
    process = started("-c", SERVER, str(port), "503")
    supervise.wait_accepting(process, Address("127.0.0.1", port), 10)
    with pytest.raises(DeploymentError, match=r"it returned 503 to GET /healthz within 0\.5 s"):
        supervise.wait_healthy([process], f"http://127.0.0.1:{port}", "/healthz", 0.5)


def test_a_server_that_takes_its_time_for_each_response_is_awaited(started, monkeypatch):
    monkeypatch.setattr(supervise, "HEALTH_TIMEOUT_S", 0.05)
    port = ports.free_port()
    process = started("-c", SERVER, str(port), "200", "0.5")
    supervise.wait_accepting(process, Address("127.0.0.1", port), 10)
    supervise.wait_healthy([process], f"http://127.0.0.1:{port}", "/healthz", 60)


def test_a_program_that_ignores_the_signal_is_killed(started):
    text = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(600)"
    )
    process = started("-c", text)
    until(lambda: supervise.last_line(process.log) == "on", "it is on")
    supervise.stop([process], timeout_s=0.3)
    assert members(process.pid) == []


def test_a_program_that_hangs_takes_connections_and_responds_afterwards(started):
    port = ports.free_port()
    process = started("-c", SERVER, str(port), "200")
    address = Address("127.0.0.1", port)
    supervise.wait_accepting(process, address, 10)
    url = f"http://{address.text}"
    with supervise.hung(process):
        assert address.accepts()
        assert http.status(url, "/", 0.2) is None
        assert [psutil.Process(pid).status() for pid in members(process.pid)] == [psutil.STATUS_STOPPED] * 2
    assert http.status(url, "/", 10) == 200
