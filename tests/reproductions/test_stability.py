"""The rating of stability: each part of its published formula, and the story of the Cherokee report in figures."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from bench import paths
from bench.measure.records.trials import Trial
from reproductions import stability
from reproductions.stability import HIGH, LOW, MEDIUM, rate, reasons, worst
from tests.bench.measure.records.run_data import TRIAL, changed
from tests.bench.measure.records.run_data import failed as failed_trial

MIB = 1024 * 1024


def trial(number: int = 1, **changes) -> Trial:
    """A trial without a fault, with whatever is changed."""
    faultless = changed(
        TRIAL,
        round=number,
        requests_total=1000,
        duration_s=10.0,
        memory={"uwsgi": ((0.0, 100 * MIB), (10.0, 100 * MIB)), "nginx": ((0.0, 10 * MIB), (10.0, 10 * MIB))},
        memory_slope_bytes_per_s={"uwsgi": 0.0, "nginx": 0.0},
        oom_kills=0,
        restarts=0,
        came_back=True,
    )
    return changed(faultless, **changes)


def broken(number: int = 1, **changes) -> Trial:
    """A trial that failed under load."""
    seen = {"oom_kills": 0, "restarts": 0, "came_back": True, **changes}
    return failed_trial(replace(TRIAL, round=number), **seen)


def unknown(trials) -> list[str]:
    return rated_as(None, rate(trials))


def rated_as(rating, rated) -> list[str]:
    return [name for name, (given, _) in rated.items() if given == rating]


def test_what_has_no_fault_is_high_without_a_reason():
    rated = rate([trial(1), trial(2), trial(3)])
    assert (worst(rated), reasons(rated), unknown([trial(1), trial(2)])) == (HIGH, [], [])


def test_one_error_in_50000_responses_is_neither_all_of_them_nor_none():
    """Of a load that failed for it, by a tool that counts no statuses."""
    rated = rate([trial(1), broken(responses_not_2xx=1, responses_before_failure=49_999)])
    rating, text = rated["errors"]
    assert rating == MEDIUM and "2e-05" in text


@pytest.mark.parametrize(
    ("changes", "rating", "name"),
    [
        ({"responses_not_2xx": 10}, MEDIUM, "errors"),
        ({"responses_not_2xx": 11}, LOW, "errors"),
        ({"errors_timeout": 1}, MEDIUM, "errors"),
        ({"requests_per_second": 130.0}, MEDIUM, "spread"),
        ({"requests_per_second": 160.0}, LOW, "spread"),
        ({"oom_kills": 1}, LOW, "kills"),
        ({"restarts": 3}, MEDIUM, "restarts"),
        ({"restarts": 4}, LOW, "restarts"),
        ({"came_back": False}, LOW, "absence"),
    ],
)
def test_one_fault_rates_the_whole_case(changes, rating, name):
    rated = rate([trial(1), trial(2), trial(3, **changes)])
    assert (worst(rated), len(reasons(rated))) == (rating, 1)
    assert rated_as(rating, rated) == [name]


@pytest.mark.parametrize(("slope_mib", "rating"), [(1.0, HIGH), (2.0, MEDIUM), (6.0, LOW), (-9.0, HIGH)])
def test_memory_that_grows(slope_mib, rating):
    growing = {"memory_slope_bytes_per_s": {"uwsgi": slope_mib * MIB, "nginx": 0.0}}
    assert worst(rate([trial(1, **growing), trial(2, **growing), trial(3)])) == rating


def test_a_server_that_is_killed_and_stays_down_is_low():
    died = broken(2, statuses={"200": 50, "503": 950}, responses_not_2xx=950, oom_kills=1, came_back=False)
    rated = rate([trial(1), died])
    assert rated_as(LOW, rated) == ["errors", "kills", "absence"]
    assert "a share of 1 " in rate([broken(errors_connect=0)])["errors"][1]


def test_a_case_without_a_valid_trial_is_rated_by_failed_loads_only():
    discarded = replace(trial(1), status="discarded", reason="interference: busy")
    no_load = broken(2, came_back=None, oom_kills=None, restarts=None)
    assert [worst(rate(trials)) for trials in ([], [discarded, discarded], [discarded, no_load])] == [None] * 3
    assert worst(rate([discarded, broken(2, came_back=False)])) == LOW
    assert unknown([trial(1, oom_kills=None, memory_slope_bytes_per_s=None)]) == ["spread", "growth", "kills"]


def test_levels_are_not_compared_with_each_other():
    trials = [trial(n, level_connections=level, requests_per_second=level) for n in (1, 2) for level in (25, 200)]
    assert worst(rate(trials)) == HIGH


def test_the_published_formula_is_the_one_that_rates():
    """docs/reproductions.md has a row for each part with the bounds of the code."""
    text = (paths.KIT / "docs" / "reproductions.md").read_text("utf-8").partition("rating of stability")[2]
    published = {
        name: tuple(_number(cell) for cell in (high, medium))
        for name, high, medium in re.findall(r"^\| `(\w+)` \|[^|]*\| ([^|]+) \| ([^|]+) \|", text, re.M)
    }
    assert published == {name: bounds[1:3] for name, bounds in stability.CRITERIA.items()}


def _number(cell: str) -> float:
    number = float(re.search(r"[\d.]+", cell)[0])
    return number / 100 if "%" in cell else number
