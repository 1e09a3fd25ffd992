"""The figures that each load tool prints, read from its real output."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from bench.figures import histogram
from bench.load import LoadError
from bench.load.ab import Ab
from bench.load.engine import ClosedLoopTool, OpenLoopTool
from bench.load.siege import Siege
from bench.load.wrk import Wrk, as_measured
from tests.bench.load.every_tool import all_tools

OUTPUTS = Path(__file__).parent / "load_outputs"


def printed(name):
    return (OUTPUTS / f"{name}.txt").read_text()


def test_wrk_measures_everything():
    figures = Wrk().parse(printed("wrk"), "")
    assert figures.requests_total == 69043
    assert figures.requests_per_second == pytest.approx(69043 / 1.000203)
    assert figures.bytes_per_second == pytest.approx(10563239 / 1.000203)
    assert (figures.latency_mean_ms, figures.latency_max_ms) == (0.080, 4.5)
    assert (figures.latency_p50_ms, figures.latency_p90_ms, figures.latency_p99_ms) == (0.042, 0.051, 1.594)
    assert figures.failure() is None


def test_ab_measures_whole_milliseconds():
    figures = Ab().parse(printed("ab-slow"), "")
    assert (figures.duration_s, figures.requests_total) == (2.012, 310)
    assert figures.requests_per_second == pytest.approx(154.08, abs=0.01)
    assert figures.bytes_per_second == pytest.approx(3100000 / 2.012)
    assert figures.latency_mean_ms == 103.845
    assert (figures.latency_p50_ms, figures.latency_p90_ms, figures.latency_p99_ms) == (101, 130, 171)
    assert figures.latency_max_ms == 204
    assert figures.failure() == (
        "5 answers with a status outside 200 to 299, 1 connections that could not be made, "
        "3 connections that broke before the answer was whole, 3 answers of another length than the first"
    )


def test_ab_has_no_percentile_of_answers_faster_than_its_clock():
    figures = Ab().parse(printed("ab"), "")
    assert (figures.latency_p50_ms, figures.latency_p99_ms, figures.latency_max_ms) == (None, None, 2)
    assert figures.latency_mean_ms == 0.052
    assert figures.failure() is None


def test_siege_has_no_percentiles():
    figures = Siege().parse(printed("siege"), "")
    assert figures.requests_total == 20734
    assert figures.requests_per_second == pytest.approx(20734 / 1.65)
    assert (figures.latency_p50_ms, figures.latency_p90_ms, figures.latency_p99_ms) == (None, None, None)
    assert (figures.latency_mean_ms, figures.latency_max_ms) == (None, 10)
    assert figures.failure() is None


def test_samples_that_wrk_added_are_not_in_its_histogram():
    figures = Wrk().parse(printed("wrk-histogram"), "")
    recorded = histogram.merged([figures.histogram])
    assert recorded.total_count == figures.requests_total == 24546
    # By wrk's own count, samples that nobody measured among them, the mean is 0.404 ms.
    assert figures.latency_mean_ms == pytest.approx(0.161, rel=0.01)
    # Little's law: connections are the rate times the mean.
    assert figures.requests_per_second * figures.latency_mean_ms / 1000 == pytest.approx(4, rel=0.15)
    assert figures.statuses == {"100-399": 24546}
    assert sum(figures.thirds) == pytest.approx(24546, abs=5)


def test_wrks_additions_are_undone_exactly():
    measured = {10: 60, 12: 30, 25: 7, 47: 2, 95: 1}
    requests, connections = 100, 4
    duration_us = 10 * (requests // connections)
    corrected = dict(measured)
    # stats_correct of wrk.
    for n in range(2 * 10, 96):
        m = n - 10
        while measured.get(n, 0) and m > 10:
            corrected[m] = corrected.get(m, 0) + measured[n]
            m -= 10
    assert sum(corrected.values()) > 100
    assert dict(as_measured(list(corrected.items()), requests, duration_us, connections)) == measured
    assert as_measured(list(corrected.items()), 99, duration_us, connections) is None


def test_wrk_adds_nothing_to_fewer_requests_than_connections():
    counts = [[20_000, 30], [900_000, 20]]
    assert as_measured(counts, 50, 2_000_000, 200) == [(20_000, 30), (900_000, 20)]
    assert as_measured(counts, 49, 2_000_000, 200) is None


def test_the_closed_loop_has_no_schedule_to_tell_of():
    figures = ClosedLoopTool().parse(printed("closedloop"), "")
    assert figures.requests_total == histogram.merged([figures.histogram]).total_count == sum(figures.thirds)
    assert figures.statuses == {"200": figures.requests_total}
    assert (figures.requests_dropped, figures.send_delay_p99_ms) == (None, None)
    # Little's law: connections are the rate times the mean.
    assert figures.requests_per_second * figures.latency_mean_ms / 1000 == pytest.approx(4, rel=0.05)
    assert figures.failure() is None


def test_the_open_loop_measures_everything():
    figures = OpenLoopTool().parse(printed("openloop"), "")
    assert (figures.requests_total, figures.requests_per_second) == (500, 500)
    assert (figures.statuses, figures.requests_dropped) == ({"200": 500}, 0)
    assert (
        figures.latency_p50_ms <= figures.latency_p90_ms <= figures.latency_p99_ms <= figures.latency_max_ms == 18.102
    )
    assert 0 < figures.send_delay_p99_ms < 18.102
    assert figures.failure() is None


def test_percentiles_with_fewer_than_ten_requests_beyond_them_are_left_out():
    figures = Ab().parse(printed("ab-slow"), "")
    assert figures.requests_total == 310
    sound = figures.supported()
    assert (sound.latency_p90_ms, sound.latency_p99_ms, sound.latency_max_ms) == (130, None, 204)


@all_tools
@pytest.mark.parametrize("stdout", ["", "{", "{}", "[1]", "Segmentation fault", '{"duration_us": 0, "requests": 0}'])
def test_output_without_figures_is_an_error_of_one_line(tool, stdout):
    with pytest.raises(LoadError) as error:
        tool.parse(stdout, "first\nunable to connect\n")
    assert str(error.value) == f"{tool.name} printed no figures; it said: unable to connect"


@all_tools
def test_a_figure_that_a_tool_does_not_measure_is_none(tool):
    figures = tool.parse(printed(tool.name), "")
    if tool.name == "siege":
        assert (figures.latency_p50_ms, figures.latency_p90_ms, figures.latency_p99_ms) == (None, None, None)
    known = [value for name, value in asdict(figures).items() if name.startswith("latency") and value is not None]
    assert all(value > 0 for value in known)
