"""What `up` says while a site is up."""

from __future__ import annotations

import threading
from argparse import Namespace
from types import SimpleNamespace

import pytest

from bench.cli import up
from bench.errors import DeploymentError


def test_kills_for_want_of_memory_are_said_as_they_come(capsys, monkeypatch):
    monkeypatch.setattr(up, "POLL_S", 0)
    kills, deaths = iter([None, 0, 1, 1, 3]), iter([None] * 4 + [DeploymentError("gunicorn was killed by SIGKILL")])
    running = SimpleNamespace(oom_kills=lambda: next(kills), died=lambda: next(deaths))
    with pytest.raises(DeploymentError, match="gunicorn was killed by SIGKILL; all else is stopped"):
        up._watch(running, SimpleNamespace(), threading.Event(), Namespace(restart=False, size="bronze"))
    assert capsys.readouterr().err.splitlines() == [
        "bench up: out of memory: the kernel killed 1 process at the limit of size bronze",
        "bench up: out of memory: the kernel killed 2 processes at the limit of size bronze",
    ]
