"""Guards: each discards bad trials of its kind, passes good ones, and reports missing observations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.errors import BenchError
from bench.measure.load import Figures
from bench.measure.run import guards
from bench.measure.run.guards import BOUNDS, OK, Observed, discards, evaluate
from bench.measure.run.trial import body_difference

FIGURES = Figures(
    duration_s=10.0,
    requests_total=10_000,
    requests_per_second=1000.0,
    bytes_per_second=5_000_000.0,
    latency_p50_ms=10.0,
    latency_p99_ms=30.0,
    latency_max_ms=50.0,
    errors_connect=0,
    errors_read=0,
    errors_timeout=0,
    responses_not_2xx=0,
    thirds=(3300, 3400, 3300),
)
CLOSED = Observed(FIGURES, connections=16, body_bytes=4800.0, tool_cpu_share=0.1, other_cpu_share=0.02)
OPEN = replace(CLOSED, figures=replace(FIGURES, requests_dropped=0, send_delay_p99_ms=1.0), connections=None, rate=1000)


def of_figures(seen, **changes):
    return replace(seen, figures=replace(seen.figures, **changes))


def test_a_good_trial_stands():
    findings = evaluate(CLOSED, BOUNDS)
    assert discards(findings) is None
    assert {name for name, text in findings.items() if text != OK} == {"lost"}
    assert set(evaluate(OPEN, BOUNDS).values()) == {OK}


@pytest.mark.parametrize(
    ("guard", "seen", "finding"),
    [
        ("bodies", replace(CLOSED, wrong_bodies="GET /: 3 bytes, not 9"), "GET /: 3 bytes, not 9"),
        ("bodies", of_figures(CLOSED, bytes_per_second=1e6), "1,000 bytes a response, but the bodies have 4,800"),
        ("tool", replace(CLOSED, tool_cpu_share=0.97), "the load tool used 97% of the CPU time it can use"),
        (
            "drift",
            of_figures(replace(CLOSED, other_cpu_share=None), thirds=(4500, 3500, 2000)),
            "4,500 requests in the first third, 2,000 in the last",
        ),
        ("interference", replace(CLOSED, other_cpu_share=0.6), "other processes took 60% of the machine"),
        ("tool", of_figures(OPEN, send_delay_p99_ms=80.0), "1 in 100 requests left 80.0 ms late or more"),
        (
            "lost",
            of_figures(OPEN, requests_dropped=7),
            "the load tool did not send 7 requests that were due: it had no connection free",
        ),
    ],
)
def test_what_is_not_to_be_trusted_is_discarded(guard, seen, finding):
    findings = evaluate(seen, BOUNDS)
    assert findings[guard] == finding
    assert discards(findings) == f"{guard}: {finding}"
    # Another bound, or none, lets it pass.
    without = {name: bound for name, bound in BOUNDS.items() if name != guard}
    assert discards(evaluate(seen, without)) is None


def test_pages_that_still_wait_at_the_end_may_be_the_larger_ones():
    few = of_figures(CLOSED, requests_total=900, requests_per_second=90.0, bytes_per_second=90 * 4000.0)
    assert evaluate(few, BOUNDS)["bodies"] != OK
    assert evaluate(replace(few, connections=250), BOUNDS)["bodies"] == OK


@pytest.mark.parametrize(
    ("guard", "seen"),
    [
        ("tool", replace(CLOSED, tool_cpu_share=None)),
        ("drift", of_figures(CLOSED, thirds=None)),
        ("interference", replace(CLOSED, other_cpu_share=None)),
        ("lost", of_figures(OPEN, requests_dropped=None)),
    ],
)
def test_a_guard_that_cannot_look_discards_nothing_and_says_so(guard, seen):
    findings = evaluate(seen, BOUNDS)
    assert findings[guard].startswith("not measured: ")
    assert discards(findings) is None


def test_few_slow_requests_are_no_drift():
    # 16 connections, a second each, for 10 s: the last requests are under way when the load ends.
    slow = of_figures(
        CLOSED,
        requests_total=150,
        requests_per_second=15.0,
        thirds=(48, 48, 32),
        bytes_per_second=75e3,
    )
    assert evaluate(slow, BOUNDS)["drift"] == OK


def test_a_late_request_is_lost_in_a_long_wait():
    assert evaluate(of_figures(OPEN, latency_p99_ms=900.0, send_delay_p99_ms=80.0), BOUNDS)["tool"] == OK


def test_bounds_can_be_moved_and_guards_silenced():
    chosen = guards.bounds(dict(map(guards.parse_bound, ["tool=0.3", "interference=off"])))
    assert chosen["tool"] == 0.3 and "interference" not in chosen and chosen["drift"] == BOUNDS["drift"]
    assert guards.GUARDS.keys() == BOUNDS.keys()


def test_a_run_whose_guards_are_off_says_so():
    assert guards.notes(BOUNDS) == guards.notes({"interference": 0.5}, {"interference": 0.25}) == []
    (note,) = guards.notes(guards.bounds({"interference": None, "drift": None}))
    assert note == "guards off: interference, drift; no trial is discarded because of them"


@pytest.mark.parametrize("word", ["tool", "tool=", "tool=-1", "tool=nan", "tool=inf", "all=off"])
def test_what_is_no_guard_or_no_bound_is_one_line(word):
    with pytest.raises(BenchError, match=f"^{word}: "):
        guards.parse_bound(word)


# ------------------------------------------------------------------------------------- what is seen


def test_a_page_is_the_same_except_its_tokens():
    page = b"<p>" + b"a" * 5000
    assert body_difference("/", page, page) == ""
    assert body_difference("/", page, b"<p>" + b"b" * 64 + page[67:]) == ""
    assert body_difference("/", page, page[:-1]) == "GET /: 5,002 bytes, not 5,003"
    assert body_difference("/", page, b"b" * 5003) == "GET /: another page of the same size"


def test_a_page_may_show_a_text_of_another_length():
    """As a banner by chance does."""
    begin, end = b"<p>" + b"a" * 5000, b"</p>" * 100
    page = begin + b"Join us!" + end
    assert body_difference("/", page, begin + b"Read the newsletter!" + end) == ""
    assert body_difference("/", page, begin + end) == ""
    assert body_difference("/", b"<p>lamp</p>", b"<p>sea</p>") == ""
    assert body_difference("/", b"nothing to see", b"another page") == "GET /: 12 bytes, not 14"
    assert body_difference("/", page, begin + b"x" * 300 + end) == "GET /: 5,703 bytes, not 5,411"
    assert body_difference("/", page, begin) == "GET /: 5,003 bytes, not 5,411"
    assert body_difference("/", page, b"") == "GET /: 0 bytes, not 5,411"


def test_what_drifts_without_others_is_the_stacks_own_and_with_them_it_may_be_over_when_it_is_made_again():
    drifting = of_figures(CLOSED, thirds=(4000, 3300, 2600))
    undisturbed = evaluate(replace(drifting, other_cpu_share=0.01), BOUNDS)
    assert undisturbed["drift"] == "the stack's own: 4,000 requests in the first third, 2,600 in the last"
    assert guards.discards(undisturbed) is None
    disturbed = evaluate(replace(drifting, other_cpu_share=0.10), BOUNDS)
    assert disturbed["interference"] == "other processes took 10% of the machine"
    assert guards.discards(disturbed).startswith("interference: ")
    # An overloaded site drifts by itself in an open loop, and making it again would find the same.
    assert evaluate(replace(drifting, other_cpu_share=0.10, rate=100), BOUNDS)["interference"] == OK
