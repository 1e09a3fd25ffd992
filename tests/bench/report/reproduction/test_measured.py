"""Figures of a reproduction's runs, found by place."""

from __future__ import annotations

import pytest

from bench.report.arrange import arrange
from bench.report.reproduction.measured import FigureByRound, MeasuredFigures, name_of, quotient
from bench.results.folder import read_run
from tests.bench.report import report_folder


def test_figures_of_one_run_are_paired_those_of_two_are_not():
    first = FigureByRound({1: 100.0, 2: 200.0, 3: 400.0}, run=0)
    half = {number: value / 2 for number, value in first.rounds.items()}
    paired = quotient(first, FigureByRound(half, run=0))
    assert (paired.median, paired.low, paired.high) == pytest.approx((2, 2, 2))
    apart = quotient(first, FigureByRound(half, run=1))
    assert apart.low < 1 < apart.high


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ({"layer": "fragments"}, "`fragments`"),
        ({"stack": "uwsgi", "layer": "none"}, "`uwsgi`"),
        ({"stack": "uwsgi", "layer": "varnish", "size": "gold"}, "`uwsgi` with `varnish` of size `gold`"),
        ({"size": "gold"}, "size `gold`"),
        ({"stacks": ["a", "b"], "name": "the two"}, "the two"),
    ],
)
def test_places_have_names(place, name):
    assert name_of(place) == name


def test_a_failed_level_leaves_the_highest_but_not_the_lowest(tmp_path):
    cases = read_run(report_folder.make(tmp_path / "cases", rounds=1)).info.cases

    def fail(trial):
        case = next(item for item in cases if item.case_id == trial.case_id)
        return report_folder.failed(case, 50, trial.round, "it fell over") if trial.level == 50 else trial

    found = arrange(read_run(report_folder.make(tmp_path / "run", levels=(10, 50), change=fail)))
    place = {"stack": "nginx-uwsgi", "workload": "home"}
    row = found.panels[-1].row("nginx-uwsgi", "none")
    asked = MeasuredFigures([found]).figure
    assert row.setting.level == 10
    assert asked({**place, "pick": "max"}, "requests_per_second").rounds == row.by_round("requests_per_second")
    for other in ({"pick": "min"}, {}):
        figure = asked({**place, **other}, "requests_per_second")
        assert (figure.rounds, figure.why) == ({}, "failed: it fell over")
