"""Quantiles of Student's t and tails of F, against SciPy."""

from __future__ import annotations

import math

import pytest

from bench.measure.stats.distributions import fisher_tail, student


@pytest.mark.parametrize("freedom", [0.3, 0.92, 1, 1.5, 2, 3.7, 11, 22, 100, 1e4])
@pytest.mark.parametrize("tail", [0.2, 0.025, 0.05 / 22, 1e-4])
def test_students_quantiles_are_scipys(tail, freedom):
    # Here, because every process of the tests imports the modules, and SciPy takes a second of a core.
    from scipy import stats

    assert student(tail, freedom) == pytest.approx(stats.t.isf(tail, freedom), rel=1e-8)


def test_hardly_any_freedom_leaves_every_value_possible():
    assert math.isinf(student(1e-4, 0.001))
    assert student(1e-4, 1) == pytest.approx(3183.1, abs=0.1)


@pytest.mark.parametrize("freedoms", [(1, 1), (1, 38), (4, 156), (9, 63)])
@pytest.mark.parametrize("ratio", [0.3, 1, 2.5, 20])
def test_tails_of_f_are_scipys(ratio, freedoms):
    from scipy import stats

    assert fisher_tail(ratio, *freedoms) == pytest.approx(stats.f.sf(ratio, *freedoms), rel=1e-8)
