"""Output of `up` while a site is up."""

from __future__ import annotations

import os
import signal
import threading
from argparse import Namespace
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest

from bench.cli import up
from bench.cli.main import main
from bench.errors import DeploymentError


@pytest.fixture
def handlers(monkeypatch):
    """Restore signal handlers after the test, which uses no database."""
    monkeypatch.setattr(up.database, "in_use", lambda *_, **__: nullcontext())
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_before_it_is_ready_is_no_success(number, capsys, monkeypatch, handlers):
    """A script that waits for `ready` must not mistake an early end for a served site."""
    monkeypatch.setattr(up.deployment, "deployed", lambda *_, **__: os.kill(os.getpid(), number))
    assert main(["up", "gunicorn"]) == 128 + number
    out, err = capsys.readouterr()
    message = f"benchapp up: {number.name} before it was ready; everything it started is stopped\n"
    assert (out, err) == ("", message)


# Who reads the line that says `ready` may stop it before the next statement.
@pytest.mark.parametrize("stopped_in", ["print", "_watch"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_while_it_serves_is_how_it_ends(number, stopped_in, capsys, monkeypatch, handlers):
    @contextmanager
    def served(*_, **__):
        yield SimpleNamespace(notes=[], url="http://127.0.0.1:1")

    monkeypatch.setattr(up.deployment, "deployed", served)
    monkeypatch.setattr(up.reload, "reachable", served)
    monkeypatch.setattr(up, "_watch", lambda *_: None)
    monkeypatch.setattr(up, stopped_in, lambda *_, **__: os.kill(os.getpid(), number), raising=False)
    assert main(["up", "gunicorn"]) == 0
    assert capsys.readouterr().err == ""


def test_kills_for_lack_of_memory_are_reported_as_they_come(capsys, monkeypatch):
    monkeypatch.setattr(up, "POLL_S", 0)
    kills, deaths = iter([None, 0, 1, 1, 3]), iter([None] * 4 + [DeploymentError("gunicorn was killed by SIGKILL")])
    running = SimpleNamespace(oom_kills=lambda: next(kills), died=lambda: next(deaths))
    with pytest.raises(DeploymentError, match="gunicorn was killed by SIGKILL; all else is stopped"):
        up._watch(running, SimpleNamespace(), threading.Event(), Namespace(restart=False, size="bronze"))
    assert capsys.readouterr().err.splitlines() == [
        "benchapp up: out of memory: the kernel killed 1 process at the limit of size bronze",
        "benchapp up: out of memory: the kernel killed 2 processes at the limit of size bronze",
    ]
