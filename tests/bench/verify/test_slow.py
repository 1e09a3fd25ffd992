"""Slow clients hold what serves them, until their block ends."""

from __future__ import annotations

import pytest

from bench.verify import slow
from bench.verify.slow import SlowClients
from tests.bench.verify.few_threads import THREADS, few_threads

# Each needs a second or more of requests or of other programs.
pytestmark = pytest.mark.servers


@pytest.mark.parametrize("how", [slow.headers, slow.bodies, slow.readers], ids=lambda how: how.__name__)
def test_as_many_as_there_are_threads_hold_up_all_others(how, monkeypatch):
    monkeypatch.setattr(slow, "LIMIT_S", 0.2)
    with few_threads() as target:
        with SlowClients(target, how(target, "/large/")) as clients:
            clients.grow(THREADS - 1)
            assert slow.held_up(target, ["/"]) is None
            clients.grow(THREADS)
            assert clients.count == THREADS
            assert slow.held_up(target, ["/"]) == ("/", "no complete answer within 0.2 s")
        assert slow.held_up(target, ["/"]) is None
