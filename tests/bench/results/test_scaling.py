"""Runs on different numbers of web hosts, as points and tiers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.figures.projection import Point
from bench.results.folder import Folder, read_run
from bench.results.records import ResultsError
from bench.results.scaling import scalings
from tests.bench.results.run_data import TRIAL, at_rate, failed
from tests.bench.results.scaled import groups, make


def scaling_of(*directories):
    (found,) = scalings([read_run(directory) for directory in directories])
    return found


def test_each_trial_is_a_point_and_each_group_of_hosts_a_tier(tmp_path):
    found = scaling_of(make(tmp_path / "1", 1, [100, 102]), make(tmp_path / "2", 2, [196, 200]))
    assert found.points == (Point(1, 100), Point(1, 102), Point(2, 196), Point(2, 200))
    assert found.load == {1: "16 connections", 2: "16 connections"}
    assert not found.scheduled
    front, web, data = found.tiers
    assert (front.name, front.processors, front.grows) == ("front", 2, False)
    assert (web.name, web.processors, web.grows) == ("web", 2, True)
    assert (data.name, data.processors, data.grows) == ("db and cache", 2, False)
    # 2 s of two cores, of which the front used a share of rate / 2000: a millisecond a request.
    assert front.seconds == pytest.approx([0.001] * 4)
    assert web.seconds == pytest.approx([0.0005] * 4)


def test_the_level_with_the_most_requests_counts(tmp_path):
    directory = make(tmp_path / "1", 1, [100, 102], plan={"levels": (16, 64)})
    more = replace(TRIAL, trial_id="more", level_connections=64, requests_per_second=150.0)
    Folder(directory).append_trial(more)
    Folder(directory).append_trial(failed(replace(more, trial_id="failed")))
    found = scaling_of(directory)
    assert found.points == (Point(1, 150),)
    assert found.load == {1: "64 connections"}


def test_a_capacity_is_a_point_and_the_rate_of_an_open_loop_is_none(tmp_path):
    limited = {"mode": "open", "capacity": "p95=50ms"}
    directory = make(tmp_path / "1", 1, [], plan=limited)
    for trial in (at_rate(50), at_rate(100), at_rate(106, latency_ms=90), at_rate(100, round=2)):
        Folder(directory).append_trial(trial)
    found = scaling_of(directory)
    assert found.points == (Point(1, 100), Point(1, 100))
    assert found.load == {1: "p95 within 50 ms"}
    assert not found.scheduled
    assert scaling_of(make(tmp_path / "2", 1, [], plan={"mode": "open"})).scheduled


def test_a_web_host_that_does_more_is_no_tier(tmp_path):
    hosts = {**groups(2), "web1": ("web", "cache"), "web2": ("load", "web")}
    found = scaling_of(make(tmp_path / "2", 2, [100], hosts=hosts))
    assert [tier.name for tier in found.tiers] == ["front", "db and cache"]


def test_a_host_that_was_not_sampled_leaves_its_tier_out(tmp_path):
    directory = make(tmp_path / "1", 1, [])
    Folder(directory).append_trial(TRIAL)
    assert scaling_of(directory).tiers == ()


@pytest.mark.parametrize("given", ["one host", "twice"])
def test_runs_that_say_nothing_of_hosts_are_refused(tmp_path, given):
    run = make(tmp_path / "run", 1, [100], hosts={} if given == "one host" else None)
    with pytest.raises(ResultsError) as caught:
        scaling_of(run, *[run] * (given == "twice"))
    wrong = {
        "one host": f"{run}: not a run on several hosts; make it with `python -m bench run --inventory`",
        "twice": f"{run}: given twice; its trials would count twice",
    }
    assert str(caught.value) == wrong[given]
