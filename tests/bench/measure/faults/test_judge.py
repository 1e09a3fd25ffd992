"""Each expectation and each guard: holds, and does not hold."""

from __future__ import annotations

import pytest

from bench.measure.faults import judge
from bench.measure.faults.fault import Expected
from bench.measure.records.fault_outcomes import FaultOutcome

USUAL = Expected()


def seen(**figures) -> FaultOutcome:
    """An outcome with only these effects on visitors."""
    ids = ("id", "one", "none", "s", "sqlite", "x", "replaced", 1, "", "ok")
    return FaultOutcome(*ids, **{"failed_new": 0, "requests_new": 0, "recovery_s": 0.0, **figures})


def unexpected(effects, expected=USUAL):
    return list(judge.unexpected(effects, expected))


def test_nothing_noticed_is_as_expected():
    assert unexpected(seen()) == []


@pytest.mark.parametrize(
    ("effects", "message"),
    [
        (seen(failed_new=2, requests_new=5, failures={"502": 2}), "2 of 5 requests failed (2x 502), 0 expected"),
        (seen(recovery_s=3.1), "recovery took 3.1 s, 3 s expected"),
        (seen(recovery_s=None), "no right responses returned during the load"),
        (seen(stale=3, example="GET /: old"), "3 stale pages, such as GET /: old"),
    ],
)
def test_what_is_not_expected_is_reported(effects, message):
    assert unexpected(effects) == [message]
    assert unexpected(effects, Expected(lost=None, recovery_s=None, stale=None)) == []


def test_a_request_may_take_as_long_as_is_expected():
    assert unexpected(seen(slowest_s=2.5), Expected(slowest_s=2.0)) == ["a request took 2.5 s, 2 s expected"]
    assert unexpected(seen(slowest_s=2.0), Expected(slowest_s=2.0)) == unexpected(seen(slowest_s=2.5)) == []


def test_a_limit_may_be_reached():
    assert unexpected(seen(failed_kept=1, requests_kept=9, failures={"read": 1}), Expected(lost=1)) == []
    assert unexpected(seen(recovery_s=3.0)) == []


def test_a_wrong_response_and_a_missing_file_are_never_expected():
    effects = seen(wrong=1, example="GET /: the page of you", missing_static=2)
    assert unexpected(effects, Expected(lost=None, recovery_s=None, stale=None)) == [
        "1 wrong responses, the first: GET /: the page of you",
        "2 static files that pages name are not there",
    ]


@pytest.mark.parametrize(
    ("effects", "failed_before", "message"),
    [
        (seen(other_cpu_share=0.1), 0, ""),
        (seen(), 2, "interference: 2 requests failed before the fault"),
        (seen(other_cpu_share=0.4), 0, "interference: other processes took 40% of the machine"),
        (seen(late_p99_ms=250.0), 0, "interference: 1 in 100 requests left 250 ms late or more"),
    ],
)
def test_guards_discard_what_a_busy_machine_did(effects, failed_before, message):
    assert judge.discarded(effects, failed_before, judge.BOUNDS) == message
    assert judge.discarded(effects, failed_before, {}) == ""


def test_the_bound_of_the_machine_can_be_moved():
    assert judge.discarded(seen(other_cpu_share=0.4), 0, {"interference": 0.5}) == ""
