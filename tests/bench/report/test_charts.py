"""Charts as pure functions: positions, scales, labels, and markup that any reader of SVG accepts."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import report
from bench.figures.stats import Spread
from bench.report import line_charts, numbers, row_charts, svg
from bench.report.axis import LINEAR, LOG, axis, scale_for, tick_label
from bench.report.write import write_report
from tests.bench.report import report_folder

SVG = "{http://www.w3.org/2000/svg}"


def entry(label="layer", median=100.0, low=90.0, high=110.0, count=3, **changes):
    figure = None if median is None else Spread(median, low, high, count)
    return row_charts.ChartEntry(label=label, colour=1, figures=(figure,), columns=(f"{median}",), **changes)


def drawn(groups, width=row_charts.WIDE, scale=LINEAR):
    chart = row_charts.RowChart(groups, ("requests/s",), "A title", "requests/s", scale)
    return ElementTree.fromstring(row_charts.bars(chart, width))


@pytest.mark.parametrize("width", [row_charts.WIDE, row_charts.NARROW])
@pytest.mark.parametrize("scale", [LINEAR, LOG])
def test_nothing_leaves_the_picture(width, scale):
    drawing = drawn(
        [("stack", [entry(median=5.0, low=4.0, high=6.0), entry(median=90_000.0, low=8e4, high=1e5)])], width, scale
    )
    _, _, right, bottom = map(float, drawing.get("viewBox").split())
    for element in drawing.iter():
        for name in ("x", "x1", "x2", "cx"):
            assert 0 <= float(element.get(name, 0)) <= right
        for name in ("y", "y1", "y2", "cy"):
            assert 0 <= float(element.get(name, 0)) <= bottom
        assert float(element.get("x", 0)) + float(element.get("width", 0)) <= right + 0.01


def test_bars_are_as_long_as_their_values():
    drawing = drawn([("stack", [entry(median=50.0, low=50.0, high=50.0), entry(median=100.0, low=100.0, high=100.0)])])
    short, long = (float(bar.get("width")) for bar in drawing.iter("rect"))
    assert long == pytest.approx(2 * short, abs=0.02)


def test_a_whisker_runs_from_the_lowest_to_the_highest_round_and_needs_two():
    def whiskers(count):
        drawing = drawn([("stack", [entry(median=100.0, low=100.0 if count == 1 else 50.0, high=100.0, count=count)])])
        return [path.get("d") for path in drawing.iter("path") if path.get("class") == "whisker"]

    assert whiskers(1) == []
    low, high = map(float, re.search(r"M([\d.]+) [\d.]+H([\d.]+)", whiskers(3)[0]).groups())
    start = 202.0
    assert (high - start) == pytest.approx(2 * (low - start), abs=0.2)


@pytest.mark.parametrize("width", [row_charts.WIDE, row_charts.NARROW])
def test_rows_without_figures_are_named_with_the_reason_and_draw_nothing(width):
    entries = [entry("a", note="failed"), entry("b"), entry("c", note="skipped"), entry("d", note="failed")]
    drawing = drawn([("stack", entries)], width)
    rows = [group for group in drawing.iter("g") if group.get("class") == "row"]
    assert [row.find("title").text for row in rows] == ["b"]
    notes = [text.text for text in drawing.iter("text") if text.get("class") == "note"]
    assert "; ".join(notes) == "failed: a, d; skipped: c"
    assert len(list(drawing.iter("rect"))) == 1


def test_a_chart_without_any_figure_is_still_drawn():
    for scale in (LINEAR, LOG):
        assert drawn([("stack", [entry(median=None, note="not measured")])], scale=scale) is not None


def test_zero_can_be_drawn_on_both_scales():
    for scale in (LINEAR, LOG):
        assert drawn([("stack", [entry(median=0.0, low=0.0, high=0.0), entry()])], scale=scale) is not None


def test_hostile_and_long_names_are_text():
    evil = report_folder.HOSTILE + "\ud800\x00" + "x" * 200
    drawing = drawn([(evil, [entry(label=evil, title=evil)])])
    assert not list(drawing.iter("script"))
    assert all(len(text.text or "") < 160 for text in drawing.iter("text"))


def test_stacked_parts_lie_end_to_end():
    parts = tuple(Spread(value, value, value, 1) for value in (10.0, 20.0, 30.0))
    drawing = ElementTree.fromstring(
        row_charts.stacked(
            row_charts.RowChart(
                [("stack", [row_charts.ChartEntry("layer", 1, parts, ("60.0",))])], ("MiB",), "t", "MiB"
            ),
            row_charts.WIDE,
        )
    )
    boxes = [
        (float(box.get("x")), float(box.get("width"))) for box in drawing.iter("rect") if "bar" in box.get("class", "")
    ]
    assert len(boxes) == 3
    for (x, width), (following, _) in pairwise(boxes):
        assert x + width + 1 == pytest.approx(following, abs=0.02)


def test_colours_repeat_and_never_take_the_baselines():
    assert [svg.colour(index) for index in (0, 1, 7, 8, 14, 15)] == ["k0", "k1", "k7", "k1", "k7", "k1"]


def test_labels_are_moved_apart_and_stay_inside():
    places = line_charts.apart([50.0, 51.0, 52.0], 13, 0, 100)
    assert places == [50.0, 63.0, 76.0]
    assert line_charts.apart([95.0, 96.0], 13, 0, 100) == [87.0, 100.0]


def test_thinning_keeps_the_peak():
    points = [(float(at), 1.0) for at in range(1000)]
    points[777] = (777.0, 99.0)
    thin = line_charts.thinned(points)
    assert len(thin) <= 150
    assert max(value for _, value in thin) == 99.0


def test_one_sample_is_a_point():
    drawing = line_charts.lines(
        [line_charts.Series("server", 1, (((0.0, 5.0),),))], line_charts.LineScales([5.0], x_unit="s"), title="t"
    )
    assert list(ElementTree.fromstring(drawing).iter("circle")) or "dot small" in drawing


@pytest.mark.parametrize(
    ("values", "ticks"), [([97.0], (0, 20, 40, 60, 80, 100)), ([0.013], (0, 0.005, 0.01, 0.015)), ([], None)]
)
def test_linear_ticks_are_round_numbers_from_zero(values, ticks):
    found = axis(values, 0, 450)
    assert found.low == 0
    if ticks:
        assert found.ticks == pytest.approx(ticks)


@pytest.mark.parametrize("values", [[100, 50_000], [0.002, 3], [1, 1], [999, 1001], [1e-9, 1e12]])
def test_logarithmic_ticks_are_few_and_hold_all_values(values):
    found = axis(values, 0, 600, LOG)
    assert found.low < min(values)
    assert found.high > max(values)
    assert 1 <= len(found.ticks) <= 8
    assert found.at(max(values)) > found.at(min(values)) or max(values) == min(values)


def test_the_scale_follows_the_figures():
    assert scale_for([100, 50_000]) == LOG
    assert scale_for([100, 200, None]) == LINEAR
    assert scale_for([]) == LINEAR


def test_tick_labels_are_short():
    assert [tick_label(value) for value in (0.05, 1, 500, 1000, 50_000, 2e6)] == ["0.05", "1", "500", "1k", "50k", "2M"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "not measured"),
        (float("nan"), "not measured"),
        (float("inf"), "not measured"),
        (0, "0"),
        (7.3e-7, "0.000001"),
        (2e-7, "under 0.000001"),
        (0.01234, "0.0123"),
        (1.234, "1.23"),
        (9.996, "10.0"),
        (12.34, "12.3"),
        (99.96, "100"),
        (123.4, "123"),
        (12345.6, "12,346"),
    ],
)
def test_numbers_have_three_significant_digits(value, text):
    assert numbers.number(value) == text


def test_the_picture_for_a_readme_stands_alone(tmp_path):
    folder = report_folder.make(tmp_path / "run")
    write_report(folder)
    text = (folder / "throughput.svg").read_text(encoding="utf-8")
    drawing = ElementTree.fromstring(text)
    assert drawing.tag == f"{SVG}svg"
    assert "var(" not in text  # not every viewer of images knows variables
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    words = [element.text for element in drawing.iter(f"{SVG}text")]
    assert "Requests/s by stack and layer: home" in words
    assert "50 connections, median and range of 3 rounds; load by wrk 4.1.0" in words
    assert any(
        word.startswith("Example 3000 (test data), 2 cores, 8.00 GiB; 21 November 2026") for word in words if word
    )


def test_charts_read_and_write_nothing():
    for name in (
        "svg",
        "axis",
        "row_charts",
        "line_charts",
        "charts",
        "small_charts",
        "findings",
        "pick",
        "model",
        "numbers",
    ):
        source = (Path(report.__file__).parent / f"{name}.py").read_text(encoding="utf-8")
        assert not re.search(r"\b(open|read_text|read_bytes|write_text|print)\(", source), name


def test_a_narrow_chart_leaves_room_for_names_beside_what_was_not_measured():
    row = row_charts.ChartEntry("none", 0, (Spread(900.0, 900.0, 900.0, 1), None), ("900", "not measured"))
    shown = {
        width: row_charts.percentiles(
            row_charts.RowChart([("uwsgi", [row])], ("p50 ms", "p99 ms"), "Latency", "ms"), width
        )
        for width in (row_charts.WIDE, row_charts.NARROW)
    }
    assert "not measured" in shown[row_charts.WIDE]
    assert "not measured" not in shown[row_charts.NARROW]
    assert ">\N{EN DASH}</tspan>" in shown[row_charts.NARROW]
