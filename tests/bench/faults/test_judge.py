"""Each expectation and each guard: holds, and does not hold."""

from __future__ import annotations

import pytest

from bench.faults import judge
from bench.faults.fault import Expected
from bench.faults.observe import Noticed


def test_nothing_noticed_is_as_expected():
    assert judge.unexpected(Noticed(), Expected()) == []


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (Noticed(failed_new=2, requests_new=5, failures={"502": 2}), "2 of 5 requests failed (2x 502), 0 expected"),
        (Noticed(recovery_s=3.1), "recovery took 3.1 s, 3 s expected"),
        (Noticed(recovery_s=None), "right answers did not come back while the visitors asked"),
        (Noticed(wrong=1, example="GET /: the page of you"), "1 wrong answers, the first: GET /: the page of you"),
        (Noticed(stale=3, example="GET /: old"), "3 stale pages, such as GET /: old"),
    ],
)
def test_what_is_not_expected_is_said(found, says):
    assert judge.unexpected(found, Expected()) == [says]
    assert judge.unexpected(found, Expected(lost=None, recovery_s=None, wrong=None, stale=None)) == []


def test_missing_static_files_are_not_expected():
    assert judge.unexpected(Noticed(), Expected(), 2) == ["2 static files that pages name are not there"]
    assert judge.unexpected(Noticed(), Expected(missing=None), 2) == []


def test_a_limit_may_be_reached():
    assert judge.unexpected(Noticed(failed_kept=1, requests_kept=9, failures={"read": 1}), Expected(lost=1)) == []
    assert judge.unexpected(Noticed(recovery_s=3.0), Expected()) == []


@pytest.mark.parametrize(
    ("found", "others", "says"),
    [
        (Noticed(), 0.1, ""),
        (Noticed(failed_before=2), 0.0, "interference: 2 requests failed before the fault"),
        (Noticed(), 0.4, "interference: other processes took 40% of the machine"),
        (Noticed(late_p99_ms=250.0), 0.0, "interference: 1 in 100 requests left 250 ms late or more"),
    ],
)
def test_guards_void_what_a_busy_machine_did(found, others, says):
    assert judge.void(found, others, judge.BOUNDS) == says
    assert judge.void(found, others, {}) == ""


def test_the_bound_of_the_machine_can_be_moved():
    assert judge.void(Noticed(), 0.4, {"interference": 0.5}) == ""
