"""Guards of a load from several hosts: each names the host, and chance names none."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from bench.measure.hosts import loaders, loaders_guards
from bench.measure.hosts.loaders import LoadShare
from bench.measure.hosts.loaders_guards import MAX_SLOWER
from bench.measure.load.engine import OPEN_LOOP
from bench.measure.load.openloop.counts import SLICES, Counts
from bench.measure.run import guards
from bench.measure.run.guards import Observed
from bench.serve.production.inventory import Host
from bench.verify.hosts.host_costs import HostCosts
from bench.verify.hosts.reach import Clock

TOOL = OPEN_LOOP
RIGHT = Clock(0, 0.1)
HOSTS = [Host(f"load{n}", f"10.0.0.{n}", ("load",), f"10.0.0.{n}", local=True) for n in (1, 2, 3)]


def share(number: int, clock: Clock = RIGHT, cpu_s: float = 1.0, delay_us: int = 50, **counts) -> LoadShare:
    responses = 1000
    few = {"slice_answers": [100] * SLICES, "slice_us": [100 * 5000] * SLICES}
    one = Counts(
        seconds=10.0,
        answers=responses,
        due=responses,
        statuses=Counter({200: responses}),
        latency=Counter({5000: responses}),
        delay=Counter({delay_us: responses}),
        thirds=[333, 333, 333],
        **{**few, **counts},
    )
    return LoadShare(HOSTS[number - 1], clock, 1, one.packed(), cpu_s)


def link(mbit: float | None, rate: float | None, peak: float | None = None) -> HostCosts:
    """Traffic of a link in its busier direction in the 10 s of a load, in Mbit/s, and its capacity."""
    carried = None if mbit is None else round(mbit * 1e6 / 8 * 10)
    return HostCosts(received_bytes=carried, sent_bytes=carried and 1, link_bits_per_second=rate, link_peak_share=peak)


def discarded(*shares: LoadShare, links=None) -> str | None:
    seen = Observed(figures=loaders.figures(TOOL, shares), rate=100 * len(shares))
    findings = loaders_guards.evaluate(TOOL, seen, shares, links or {}, guards.BOUNDS)
    assert findings.keys() == guards.BOUNDS.keys()
    return guards.discards(findings)


def test_a_load_of_hosts_that_are_alike_is_valid():
    assert discarded(share(1), share(2)) is None
    assert discarded(share(1)) is None


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (share(2, Clock(200.4, 0.3)), "tool: the clock of load2 is 200 ms ahead: apt-get install chrony"),
        (share(2, Clock(-60, 5)), "tool: the clock of load2 is 60 ms behind: apt-get install chrony"),
        (share(2, Clock(0, 80)), "tool: the clock of load2 is known to within 80 ms only: its link is slow"),
        (share(2, late_s=0.3), "tool: load2 began 300 ms late"),
        (share(2, delay_us=40_000), "tool: load2: 1 in 100 requests left 40.0 ms late or more"),
        (share(2, cpu_s=9.5), "tool: load2: the load tool used 95% of the CPU time it can use"),
    ],
)
def test_a_host_that_cannot_be_trusted_is_named(odd, reason):
    assert discarded(share(1), odd, share(3)) == reason
    assert discarded(odd, share(1), share(3)) == reason


def test_a_full_link_is_the_networks_fault():
    links = {"load1": link(4, 1e9), "front1": link(9.62, 10e6)}
    assert discarded(share(1), links=links) == "tool: the link of front1 is full: 9.6 of 10 Mbit/s"
    links = {"load1": link(4, 1e9, 0.5), "front1": link(4, 10e6, 0.97)}
    assert discarded(share(1), links=links) == "tool: the link of front1 is full: 9.7 of 10 Mbit/s for about a second"


@pytest.mark.parametrize(
    ("links", "reason"),
    [
        ({}, "what a link carried is not known: no host"),
        ({"load1": link(4, 1e9), "front1": link(9.62, None)}, "the rate of a link is not known: front1"),
        (
            # load2 is unknown, which does not mean an empty link.
            {"load1": link(4, None), "load2": HostCosts(not_sampled="gone"), "web1": link(None, 1e9)},
            "what a link carried is not known: load2, web1; the rate of a link is not known: load1",
        ),
    ],
)
def test_a_link_that_was_not_seen_is_not_ok(links, reason):
    seen = Observed(figures=loaders.figures(TOOL, [share(1)]))
    findings = loaders_guards.evaluate(TOOL, seen, [share(1)], links, {"tool": 0.9})
    assert findings == {"tool": f"not measured: {reason}"}
    findings = loaders_guards.evaluate(TOOL, seen, [share(1)], links | {"db1": link(950, 1e9)}, {"tool": 0.9})
    assert findings == {"tool": "the link of db1 is full: 950.0 of 1,000 Mbit/s"}


def drawn(draw: random.Random, slow: float = 1.0) -> list[LoadShare]:
    """A load of three hosts on a server of varying speed, with response times of the second host multiplied by
    `slow`."""
    speed, parts = 0.0, []
    for _ in range(SLICES):
        speed = 0.7 * speed + draw.gauss(0, 0.5)
        # The mean of a hundred latencies, each of them half of itself off.
        parts.append([math.exp(speed) * math.exp(draw.gauss(0, 0.05)) for _ in HOSTS])
    return [
        share(n, slice_us=[round(500_000 * part[n - 1] * (slow if n == 2 else 1)) for part in parts]) for n in (1, 2, 3)
    ]


def named(trials: int, slow: float = 1.0) -> Iterator[str]:
    draw = random.Random(11)
    return (loaders_guards.disagreement(drawn(draw, slow), MAX_SLOWER) for _ in range(trials))


def test_chance_names_no_host():
    assert [message for message in named(300) if message] == []


def test_a_host_at_half_speed_is_named():
    assert all(message.startswith("responses to load2 take ") for message in named(30, slow=2.0))
    (message,) = named(1, slow=2.0)
    assert message.endswith(" times as long as responses to the other load hosts: look at that host or its link")


def test_neither_one_host_nor_one_without_responses_can_disagree():
    assert loaders_guards.disagreement([share(1)], 0.25) == ""
    none = replace(share(2), counts=Counts().packed())
    assert loaders_guards.disagreement([share(1), none], 0.25) == ""
