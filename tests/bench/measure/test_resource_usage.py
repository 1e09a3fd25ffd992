"""What a load uses and leaves behind."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

from bench.machine import processes
from bench.machine.processes import Usage
from bench.measure import resource_usage
from tests.cases import kit

ME = {"server": os.getpid()}


# ------------------------------------------------------------------------------------------ connections


def test_a_connection_that_only_the_client_has_closed_is_counted():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
        with server:
            assert resource_usage.close_wait(ME) == {"server": 0}
            client.close()
            assert resource_usage.until(lambda: resource_usage.close_wait(ME) == {"server": 1}, 5)
            other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
            assert resource_usage.close_wait({"other": other.pid}) == {"other": 0}
            other.communicate(b"\n")
        assert resource_usage.until(lambda: resource_usage.close_wait(ME) == {"server": 0}, 5)


def test_connections_about_to_be_closed_are_waited_for(monkeypatch):
    found = iter([{"server": 3}, {"server": 1}, {"server": 0}, {"server": 9}])
    monkeypatch.setattr(resource_usage, "close_wait", lambda pids: next(found))
    assert resource_usage.settled_close_wait(ME) == {"server": 0}


def test_a_server_that_does_not_come_back_is_given_up_in_time():
    began = time.monotonic()
    assert resource_usage.until(lambda: False, 0.2) is False
    assert 0.2 <= time.monotonic() - began < 10


def test_a_database_that_ends_and_begins_processes_replaces_no_worker(monkeypatch):
    usage = {"app": Usage((), None, 1.0, 2, replaced=1), "database": Usage((), None, 1.0, 9, replaced=7)}
    monkeypatch.setattr(resource_usage.Sampler, "stop", lambda self: usage)
    running = SimpleNamespace(
        ready_s=0.1,
        pids={"app": os.getpid(), "database": os.getpid()},
        servers=("app",),
        memory_idle_bytes={},
        oom_kills=lambda: None,
        answers=lambda: True,
        env={},
        case=SimpleNamespace(project=kit()),
    )
    watching = resource_usage.Observer(running)
    watching.start()
    watching.stop()
    assert watching.condition.restarts == 1
    watching._sampler._stop.set()
    watching._sampler._thread.join()


def test_a_tree_has_used_its_processor_time():
    before = processes.cpu_seconds(os.getpid())
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    assert 0.05 < processes.cpu_seconds(os.getpid()) - before < 10
