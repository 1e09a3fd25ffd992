"""The rating of stability: each part of its published formula, and the story of the Cherokee report in figures."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from bench import paths
from bench.results import stability
from bench.results.records import Case
from bench.results.stability import HIGH, LOW, MEDIUM, rate
from bench.results.trials import Trial
from tests.bench.report import report_folder

MIB = 1024 * 1024


CASE = Case("one~none~home~bronze~sqlite", "uwsgi", "none", "home", "bronze", "sqlite")
NO_ERRORS = {"errors_connect": 0, "errors_read": 0, "errors_timeout": 0, "responses_not_2xx": 0}


def trial(number: int = 1, **changes) -> Trial:
    """A trial without a fault, with whatever is changed."""
    faultless = replace(
        report_folder.failed(CASE, 16, number, "reason"),
        status="ok",
        reason=None,
        requests_per_second=100.0,
        requests_total=1000,
        duration_s=10.0,
        memory={"uwsgi": ((0.0, 100 * MIB), (10.0, 100 * MIB)), "nginx": ((0.0, 10 * MIB), (10.0, 10 * MIB))},
        memory_slope_bytes_per_s={"uwsgi": 0.0, "nginx": 0.0},
        memory_idle_bytes={"uwsgi": 60 * MIB, "nginx": 8 * MIB},
        memory_peak_bytes={"uwsgi": 100 * MIB, "nginx": 10 * MIB},
        oom_kills=0,
        restarts=0,
        came_back=True,
        **NO_ERRORS,
    )
    return replace(faultless, **changes)


def broken(number: int = 1, **changes) -> Trial:
    """A trial that failed under load."""
    seen = {"oom_kills": 0, "restarts": 0, "came_back": True, **changes}
    return replace(report_folder.failed(CASE, 16, number, "503"), **seen)


def test_what_has_no_fault_is_high_without_a_reason():
    rated = rate([trial(1), trial(2), trial(3)])
    assert (rated.rating, rated.reasons, rated.unknown) == (HIGH, (), ())


@pytest.mark.parametrize(
    "changes, rating, words",
    [
        ({"responses_not_2xx": 10}, MEDIUM, "1 % of the requests of one trial failed"),
        ({"responses_not_2xx": 11}, LOW, "1.1 % of the requests of one trial failed"),
        ({"errors_timeout": 1}, MEDIUM, "0.0999 % of the requests of one trial failed"),
        ({"requests_per_second": 130.0}, MEDIUM, "requests/s varied by 30 % between rounds"),
        ({"requests_per_second": 160.0}, LOW, "requests/s varied by 60 % between rounds"),
        ({"oom_kills": 1}, LOW, "1 process killed for lack of memory"),
        ({"restarts": 3}, MEDIUM, "3 worker processes replaced during one trial"),
        ({"restarts": 4}, LOW, "4 worker processes replaced during one trial"),
        ({"came_back": False}, LOW, "the site did not recover by itself after 1 trial"),
    ],
)
def test_one_fault_rates_the_whole_case(changes, rating, words):
    rated = rate([trial(1), trial(2), trial(3, **changes)])
    assert (rated.rating, rated.reasons) == (rating, (words,))


@pytest.mark.parametrize("slope_mib, rating", [(1.0, HIGH), (2.0, MEDIUM), (6.0, LOW), (-9.0, HIGH)])
def test_memory_that_grows(slope_mib, rating):
    growing = {"memory_slope_bytes_per_s": {"uwsgi": slope_mib * MIB, "nginx": 0.0}}
    assert rate([trial(1, **growing), trial(2, **growing), trial(3)]).rating == rating


def test_benchmark_b_spawns_until_it_is_killed_and_stays_dead():
    died = broken(2, statuses={"200": 50, "503": 950}, responses_not_2xx=950, oom_kills=1, came_back=False)
    rated = rate([trial(1), died])
    assert rated.rating == LOW
    assert set(rated.reasons) == {
        "95 % of the requests of one trial failed",
        "1 process killed for lack of memory",
        "the site did not recover by itself after 1 trial",
    }


def test_a_load_without_any_answer_is_all_errors():
    assert stability.errors([broken(errors_connect=0)]) == 1.0


def test_what_never_came_to_a_load_says_nothing():
    rated = rate([broken(came_back=None, oom_kills=None, restarts=None)])
    assert (rated.rating, len(rated.unknown)) == (None, 6)
    assert rate([]).rating is None


def test_a_case_without_a_valid_trial_is_not_rated():
    voided = replace(trial(1), status="voided", reason="interference: busy")
    assert rate([voided, voided]).rating is None
    assert rate([voided, broken(2, came_back=None, oom_kills=None, restarts=None)]).rating is None
    assert rate([voided, broken(2, came_back=False)]).rating == LOW


def test_what_was_not_measured_is_named_and_does_not_rate():
    rated = rate([trial(1, oom_kills=None, memory_slope_bytes_per_s=None)])
    assert (rated.rating, rated.unknown) == (HIGH, ("spread", "growth", "kills"))


def test_levels_are_not_compared_with_each_other():
    trials = [trial(n, level_connections=level, requests_per_second=level) for n in (1, 2) for level in (25, 200)]
    assert stability.rate_spread(trials) == 0


def test_the_published_formula_is_the_one_that_rates():
    """docs/stability.md has a row for each part with the bounds of the code."""
    text = (paths.PROJECT / "docs" / "stability.md").read_text("utf-8").partition("## Stability")[2]
    published = {}
    for name, high, medium in re.findall(r"^\| `(\w+)` \|[^|]*\| ([^|]+) \| ([^|]+) \|", text, re.M):
        published[name] = tuple(_number(cell) for cell in (high, medium))
    assert published == stability.BOUNDS


def _number(cell: str) -> float:
    number = float(re.search(r"[\d.]+", cell)[0])
    return number / 100 if "%" in cell else number
