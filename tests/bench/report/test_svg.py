"""Colours of the charts."""

from __future__ import annotations

from bench.report import (
    svg,
)


def test_colours_repeat_and_never_take_the_baselines():
    assert [svg.colour(index) for index in (0, 1, 7, 8, 14, 15)] == ["k0", "k1", "k7", "k1", "k7", "k1"]
