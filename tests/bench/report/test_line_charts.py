"""Line charts: labels and thinning."""

from __future__ import annotations

from xml.etree import ElementTree

from bench.report import (
    line_charts,
)


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
