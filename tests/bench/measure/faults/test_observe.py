"""Effects on visitors, from visits made by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from bench.measure.faults.observe import observe
from tests.bench.measure.faults.seen import DEPLOY, MOMENTS, PAGES, visit


def seen(*visits, moments=MOMENTS, pages=PAGES):
    """Effects of the fault, and failures before."""
    effects = observe(visits, pages, moments)
    rest = {"failed_before": effects.failed_before, "named": effects.named, "page": effects.page}
    figures = effects.figures | {"failed": effects.figures["failed_new"] + effects.figures["failed_kept"]}
    return SimpleNamespace(**figures, **rest)


def test_right_responses_are_nothing_to_notice():
    effects = seen(*(visit(second / 2, page=second % 3, kept=bool(second % 2)) for second in range(40)))
    assert (effects.failed, effects.failures, effects.wrong, effects.stale, effects.failed_before) == (0, {}, 0, 0, 0)
    assert (effects.requests_new, effects.requests_kept) == (10, 10)
    assert effects.recovery_s == 0.0
    assert (effects.mixed_s, effects.stale_s, effects.example) == (None, None, None)
    assert (effects.named, effects.page) == ({"/static/r.css"}, None)


def test_failures_are_counted_by_connection_and_kind():
    effects = seen(
        visit(9.0, failure="connect"),
        visit(10.1, failure="connect"),
        visit(10.2, kept=True, status=502),
        visit(10.3, kept=True, failure="read"),
        visit(10.4),
    )
    assert (effects.failed_before, effects.failed_new, effects.failed_kept) == (1, 1, 2)
    assert effects.failures == {"connect": 1, "502": 1, "read": 1}
    assert effects.page == PAGES[0]


def test_a_keep_alive_connection_closed_before_the_first_byte_is_no_failure():
    effects = seen(visit(10.1, again=1), visit(10.2))
    assert (effects.retried, effects.failed) == (1, 0)


def test_a_request_under_way_when_it_strikes_counts():
    assert seen(visit(9.95, failure="read", took=0.1), visit(11)).failed_new == 1


def test_recovery_counts_from_the_end_of_the_cause_to_the_response_after_the_last_failure():
    down = [visit(10.5 + number / 10, failure="connect") for number in range(10)]
    assert seen(*down, visit(11.9)).recovery_s == pytest.approx(2.0)
    assert seen(*down, visit(11.9), moments=replace(MOMENTS, over=11.5)).recovery_s == pytest.approx(0.5)
    assert seen(*down).recovery_s is None
    assert seen(visit(10.1), *down, visit(11.45, failure="timeout"), visit(11.5)).recovery_s == pytest.approx(1.6)


def test_the_longest_gap_is_between_right_pages():
    effects = seen(visit(10.1), visit(10.5, page=2), visit(11.0, page=2), visit(12.1), visit(12.3))
    assert effects.longest_gap_s == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"page": 1, "account": "you"}, "the page of you, not of me"),
        ({"page": 0, "account": "me"}, "the page of me, not of nobody"),
        ({"template": "release-2"}, "code of release-1 with the template of release-2"),
        ({"code": "release-9"}, "version release-9, neither release-1 nor release-1"),
        ({"mark": (), "size": 40}, "40 bytes, cut or of another page"),
        ({"page": 2, "size": 90}, "/static/x.css: 90 bytes, not 100"),
    ],
)
def test_a_wrong_response_is_named(bad, message):
    effects = seen(visit(9.0, page=2), visit(10.1), visit(10.2, **bad))
    assert effects.wrong == 1
    assert message in effects.example
    assert (effects.failed, effects.page) == (0, PAGES[bad.get("page", 0)])


def test_a_wrong_response_before_the_fault_is_not_of_it():
    assert seen(visit(9.0, account="you"), visit(10.1)).wrong == 0


def test_a_page_is_stale_beyond_its_time_to_live():
    old = visit(70.0, rendered=11.0)
    assert seen(old).stale == 1
    assert seen(old, moments=replace(MOMENTS, ttl_s=60.0)).stale == 0
    assert seen(visit(80.0, rendered=11.0), moments=replace(MOMENTS, ttl_s=60.0)).stale == 1
    # The page of an account is cached nowhere.
    effects = seen(visit(70.0, page=1, rendered=11.0), moments=replace(MOMENTS, ttl_s=60.0))
    assert effects.stale == 1
    assert "rendered 59.0 s before the request, 0 s are allowed" in effects.example
    # A page of a project says itself for how long it is fresh.
    assert seen(old, pages=[replace(PAGES[0], ttl_s=60.0)]).stale == 0


def test_times_of_the_day_are_compared_with_the_monotonic_clock():
    assert seen(visit(10.5, rendered=1010.5), moments=replace(MOMENTS, wall_s=1000.0)).stale == 0


def test_two_versions_at_once_are_measured():
    effects = seen(
        visit(10.5),
        visit(11.0, code="release-2"),
        visit(11.4),
        visit(11.5, code="release-2"),
        visit(12.5, code="release-2"),
        moments=DEPLOY,
    )
    assert effects.mixed_s == pytest.approx(0.4)
    assert (effects.wrong, effects.stale, effects.stale_s) == (0, 0, 0.0)


def test_the_old_version_after_the_deploy_is_stale():
    effects = seen(visit(11.0, code="release-2"), visit(12.5), visit(14.5), visit(15, code="release-2"), moments=DEPLOY)
    assert (effects.stale, effects.stale_s) == (2, 2.5)
    assert "release-1 came 0.5 s after the deploy" in effects.example


def test_how_late_requests_left():
    effects = seen(*(visit(number / 10, late=0.2 if number > 95 else 0.0) for number in range(100)))
    assert effects.late_p99_ms == pytest.approx(200.0)
    assert seen(visit(10.1, late=5.0, again=1), visit(10.2)).late_p99_ms == 0.0
