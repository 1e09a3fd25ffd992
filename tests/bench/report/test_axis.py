"""Axes: round ticks, and the choice of scale."""

from __future__ import annotations

import pytest

from bench.report.axis import LINEAR, LOG, axis, scale_for, tick_label


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
