"""Replays: a recording's own arrivals, faster or slower, and refused recordings."""

from __future__ import annotations

import pytest

from bench.errors import BenchError
from bench.measure.run import plan, replay
from bench.measure.run.plan import Request
from bench.measure.run.workload import Workload
from bench.serve.deployment.database import Database
from tests.cases import kit

RECORDED = Workload("visit", "a visit", ("/", "/a/", "/b/"), times_s=(0.0, 1.0, 4.0))


def test_requests_are_due_as_they_were_recorded_or_faster():
    assert replay.arrivals(RECORDED, 1, 5) == (0.0, 1.0, 4.0)
    assert replay.arrivals(RECORDED, 2, 2.5) == (0.0, 0.5, 2.0)
    assert replay.arrivals(RECORDED, 0.5, 3) == (0.0, 2.0)


def test_a_short_recording_begins_again_after_its_usual_gap():
    assert replay.arrivals(RECORDED, 1, 12) == (0.0, 1.0, 4.0, 6.0, 7.0, 10.0)


def test_a_trial_is_as_long_as_the_recording_up_to_a_minute():
    assert (replay.duration_s(RECORDED, 1), replay.duration_s(RECORDED, 3)) == (6, 2)
    long = Workload("day", "a day", ("/", "/"), times_s=(0.0, 86_400.0))
    assert replay.duration_s(long, 1) == replay.USUAL_S
    assert (replay.level(RECORDED, 1, 6), replay.level(RECORDED, 8, 1)) == (1, 5)


def test_a_rate_is_a_number_and_a_speed_begins_with_x():
    assert (replay.rate("20"), replay.rate("x2"), replay.rate("x0.5")) == (20, 2.0, 0.5)
    for text in ("0", "x0", "x", "fast", "-1", "1.5", "200000"):
        with pytest.raises(BenchError, match="is neither a whole number from 1 to 100000 nor a speed"):
            replay.rate(text)


def test_what_has_no_times_cannot_be_replayed():
    with pytest.raises(BenchError) as error:
        plan.make_plan(Request(kit(), Database("sqlite", is_created=True), workloads=("home",), rates=(1.0,)))
    why = "workload home has no times to replay; name one of a HAR file or a log"
    assert str(error.value) == f"--rate x1: {why}"
    with pytest.raises(BenchError, match="--rate x2 replays one workload: use only this rate, with one --workload"):
        plan.make_plan(Request(kit(), Database("sqlite", is_created=True), workloads=("home", "session"), rates=(2.0,)))
