"""The figures printed by each load tool, parsed from real output."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.measure.load import LoadError
from bench.measure.load.ab import Ab
from bench.measure.load.engine import CLOSED_LOOP, OPEN_LOOP
from bench.measure.load.siege import Siege
from bench.measure.load.wrk import Wrk
from bench.measure.stats import histogram
from tests.bench.measure.load.every_tool import all_tools

OUTPUTS = Path(__file__).parent / "load_outputs"


def printed(name):
    return (OUTPUTS / f"{name}.txt").read_text()


def test_wrk_measures_everything():
    figures = Wrk().parse(printed("wrk"), "")
    assert figures.requests_total == 69043
    assert figures.requests_per_second == pytest.approx(69043 / 1.000203)
    assert figures.bytes_per_second == pytest.approx(10563239 / 1.000203)
    assert (figures.latency_p50_ms, figures.latency_max_ms) == (None, 4.5)
    assert figures.failure() is None


def test_ab_counts_what_went_wrong():
    figures = Ab().parse(printed("ab-slow"), "")
    assert (figures.duration_s, figures.requests_total) == (2.012, 310)
    assert figures.requests_per_second == pytest.approx(154.08, abs=0.01)
    assert figures.bytes_per_second == pytest.approx(3100000 / 2.012)
    assert figures.latency_max_ms == 204
    assert figures.failure() == (
        "5 responses with a status outside 200 to 299, 1 connection that could not be made, "
        "3 connections that broke before the response was complete, 3 responses of another length than the first"
    )


def test_ab_counts_requests_that_it_could_not_send():
    output = printed("ab").replace("Failed requests:        0", "Failed requests:        0\nWrite errors:           7")
    assert Ab().parse(output, "").errors_read == 7


def test_siege_measures_the_longest_request():
    figures = Siege().parse(printed("siege"), "")
    assert figures.requests_total == 20734
    assert figures.requests_per_second == pytest.approx(20734 / 1.65)
    assert figures.latency_max_ms == 10
    assert figures.failure() is None


def test_the_closed_loop_has_no_schedule_to_tell_of():
    figures = CLOSED_LOOP.parse(printed("closedloop"), "")
    assert figures.requests_total == sum(figures.thirds)
    assert figures.statuses == {"200": figures.requests_total}
    assert (figures.requests_dropped, figures.send_delay_p99_ms) == (None, None)
    assert (figures.latency_p50_ms, figures.histogram) == (None, None)
    assert figures.failure() is None


def test_the_open_loop_measures_everything():
    figures = OPEN_LOOP.parse(printed("openloop"), "")
    assert (figures.requests_total, figures.requests_per_second) == (500, 500)
    assert (figures.statuses, figures.requests_dropped) == ({"200": 500}, 0)
    assert figures.latency_p50_ms <= figures.latency_p99_ms <= figures.latency_max_ms == 18.102
    assert histogram.merged([figures.histogram]).total_count == 500
    # Of 500 requests only five lie beyond the 99th percentile.
    assert (figures.supported().latency_p50_ms, figures.supported().latency_p99_ms) == (figures.latency_p50_ms, None)
    assert 0 < figures.send_delay_p99_ms < 18.102
    assert figures.failure() is None


@all_tools
@pytest.mark.parametrize("stdout", ["", "{", "{}", "[1]", "Segmentation fault", '{"duration_us": 0, "requests": 0}'])
def test_output_without_figures_is_an_error_of_one_line(tool, stdout):
    with pytest.raises(LoadError) as error:
        tool.parse(stdout, "first\nunable to connect\n")
    assert str(error.value) == f"{tool.name} printed no figures; it said: unable to connect"
