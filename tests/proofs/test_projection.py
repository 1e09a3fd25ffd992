"""The benchmark of projections: its table from figures that are made up, and one limited host for real."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import BenchError
from bench.fleet.world import plan
from bench.machine import cgroups
from bench.machine.cgroups import Unavailable
from tests import once
from tests.proofs import projection
from tests.proofs.projection import HELD_AGAINST, MEASURED, hosts, line, rate


def figures(eight: float, contention: float = 0.0) -> dict[int, list[float]]:
    found = {n: [100 * n / (1 + contention * (n - 1)) * share for share in (0.99, 1, 1.01)] for n in MEASURED}
    return {**found, HELD_AGAINST: [eight] * 3}


def test_a_projection_that_holds_one_that_misses_and_none():
    text, verdict = line("linear", figures(790))
    assert (
        verdict == "holds"
        and text.startswith("linear             100.0   200.0   300.0   400.0   790.0 ")
        and text.endswith(": holds")
    )
    text, verdict = line("linear", figures(400))
    assert verdict == "MISSED" and text.endswith(": MISSED")
    text, verdict = line("faster", figures(2000, -0.1))
    assert verdict == "not projected" and "  not projected: the interval of contention is negative" in text


def test_a_miss_fails(monkeypatch, capsys):
    monkeypatch.setattr(projection, "measure", lambda hold_s, rounds, seconds: figures(400 if hold_s else 790))
    assert projection.main([]) == 1
    _, *lines, last = capsys.readouterr().out.splitlines()
    assert (len(lines), last) == (2, "1 holds, 1 MISSED, 0 not projected")


def test_what_is_not_projected_is_no_success(monkeypatch, capsys):
    monkeypatch.setattr(projection, "measure", lambda hold_s, rounds, seconds: figures(2000, -0.1))
    assert projection.main([]) == 1
    assert capsys.readouterr().out.endswith("\n0 holds, 0 MISSED, 2 not projected\n")


@pytest.mark.servers
def test_hosts_are_limited_and_gone_afterwards(tmp_path_factory):
    try:
        cgroups.group()
        plan.must_be_possible()
    except (Unavailable, BenchError) as why:
        pytest.skip(str(why))
    with once.alone(tmp_path_factory, "world"), hosts(1, 0.0) as (address,):
        served = rate([address], 0.5)
    # A request takes 2 ms of 60 ms of processor time a second; what a period has left counts, too.
    assert 0 < served <= 45
    assert not list(Path("/run/netns").glob(f"{plan.PREFIX}*"))
