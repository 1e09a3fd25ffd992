"""What other processes take of the machine, and which of them."""

from __future__ import annotations

from bench.measure import interference
from bench.measure.interference import MachineLoad


def test_the_busiest_processes_of_others_are_named():
    load = MachineLoad.of(0.62, {(12, "chromium"): 0.1, (13, "cc1"): 0.4, (14, "idle"): 0.01})
    assert load.share == 0.62
    assert load.words == "other processes take 62% of this machine (cc1, process 13: 40%; chromium, process 12: 10%)"


def test_a_load_of_processes_that_cannot_be_seen_is_said_too():
    assert MachineLoad.of(0.5, {}).words == "other processes take 50% of this machine (none that can be seen from here)"


def test_the_real_machine_can_be_observed():
    load = interference.machine_load(0.05)
    assert load.share is None or 0 <= load.share <= 1
