"""Row charts: positions, scales, labels, and well-formed markup."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from bench.figures.stats import Estimate
from bench.report import (
    row_charts,
)
from bench.report.axis import LINEAR, LOG
from tests.bench.report import report_folder


def entry(label="layer", median=100.0, low=90.0, high=110.0, count=3, **changes):
    figure = None if median is None else Estimate(median, low, high, count)
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


def test_a_whisker_is_the_interval_of_at_least_two_rounds():
    def whiskers(count):
        drawing = drawn([("stack", [entry(median=100.0, low=100.0 if count == 1 else 50.0, high=100.0, count=count)])])
        return [path.get("d") for path in drawing.iter("path") if path.get("class") == "whisker"]

    assert whiskers(1) == []
    low, high = map(float, re.search(r"M([\d.]+) [\d.]+H([\d.]+)", whiskers(3)[0]).groups())
    start = 202.0
    assert (high - start) == pytest.approx(2 * (low - start), abs=0.2)


@pytest.mark.parametrize("width", [row_charts.WIDE, row_charts.NARROW])
def test_rows_without_figures_are_named_with_the_reason(width):
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
    parts = tuple(Estimate(value, value, value, 1) for value in (10.0, 20.0, 30.0))
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


def test_a_narrow_chart_shows_a_dash_for_not_measured():
    row = row_charts.ChartEntry("none", 0, (Estimate(900.0, 900.0, 900.0, 1), None), ("900", "not measured"))
    shown = {
        width: row_charts.percentiles(
            row_charts.RowChart([("uwsgi", [row])], ("p50 ms", "p99 ms"), "Latency", "ms"), width
        )
        for width in (row_charts.WIDE, row_charts.NARROW)
    }
    assert "not measured" in shown[row_charts.WIDE]
    assert "not measured" not in shown[row_charts.NARROW]
    assert ">\N{EN DASH}</tspan>" in shown[row_charts.NARROW]
