"""The two-way analysis of cases and rounds, against a dense least-squares fit and SciPy."""

from __future__ import annotations

import random

import numpy
import pytest

from bench.figures import noise
from bench.figures.noise import noise_of, satterthwaite


def table(cases, rounds, seed, *, voided=0.0, noises=(0.05,)):
    draw = random.Random(seed)
    speeds = [draw.gauss(0, 0.3) for _ in range(rounds)]
    found = {}
    for case in range(cases):
        sigma = noises[case % len(noises)]
        cells = {n: case / 10 + speed + draw.gauss(0, sigma) for n, speed in enumerate(speeds)}
        found[case] = {n: cell for n, cell in cells.items() if draw.random() >= voided} or cells
    return found


TABLES = [
    pytest.param(table(12, 2, 1), id="12 cases, 2 rounds"),
    pytest.param(table(5, 4, 2, noises=(0.02, 0.2)), id="unequal noise"),
    pytest.param(table(9, 3, 3, voided=0.2), id="voided trials"),
    pytest.param(table(6, 5, 4, voided=0.3, noises=(0.02, 0.3)), id="voided trials, unequal noise"),
]


def dense(cells, weights):
    """Design matrix, logarithms and square roots of the weights, a row a cell."""
    rounds = sorted({n for row in cells.values() for n in row})
    keys = [(case, n) for case, row in cells.items() for n in row]
    design = numpy.zeros((len(keys), len(cells) + len(rounds)))
    for line, (case, n) in enumerate(keys):
        design[line, list(cells).index(case)] = design[line, len(cells) + rounds.index(n)] = 1
    roots = numpy.sqrt([weights[case] for case, _ in keys])
    return keys, design, numpy.array([cells[case][n] for case, n in keys]), roots


def rows_of(cells):
    rounds = sorted({n for row in cells.values() for n in row})
    return [noise._Row([row.get(n) for n in rounds]) for row in cells.values()]


@pytest.mark.parametrize("cells", TABLES)
def test_residuals_and_their_degrees_of_freedom_are_those_of_least_squares(cells):
    weights = [1 + case % 3 for case in cells]
    fit = noise._Fit(rows_of(cells), weights)
    keys, design, logs, roots = dense(cells, weights)
    scaled = design * roots[:, None]
    hat = scaled @ numpy.linalg.pinv(scaled)
    left = (logs * roots - hat @ (logs * roots)) / roots
    for index, case in enumerate(cells):
        own = [line for line, (name, _) in enumerate(keys) if name == case]
        assert fit.squares[index] == pytest.approx(sum(left[own] ** 2), abs=1e-12)
        assert fit.freedoms[index] == pytest.approx(sum(1 - hat[line, line] for line in own), abs=1e-9)
    assert sum(fit.freedoms) == pytest.approx(len(keys) - numpy.linalg.matrix_rank(design))


@pytest.mark.parametrize("cells", TABLES)
def test_differences_are_those_of_weighted_least_squares(cells):
    found = noise_of(cells)
    # The last fit weighs with the variances of the one before; the difference uses its result.
    fit = noise._Fit(rows_of(cells), [1.0] * len(cells))
    variance, prior = noise._prior(fit.squares, fit.freedoms)
    before = [noise._moderated(*own, variance, prior) for own in zip(fit.squares, fit.freedoms, strict=True)]
    _, design, logs, roots = dense(cells, [variance / own for own in before])
    solution = numpy.linalg.pinv(design * roots[:, None]) @ (logs * roots)
    for other in range(1, len(cells)):
        assert found.difference(0, other).estimate == pytest.approx(solution[0] - solution[other], abs=1e-9)


def test_the_variance_of_a_difference_knows_which_rounds_are_missing():
    cells = table(9, 3, 3, voided=0.2)
    found = noise_of(cells)
    assert found.variance == pytest.approx(found.cases[0].variance)  # all alike: weights are equal
    _, design, _, _ = dense(cells, [1] * 9)
    covariance = numpy.linalg.pinv(design.T @ design) * found.variance
    for other in range(1, 9):
        contrast = numpy.zeros(design.shape[1])
        contrast[0], contrast[other] = 1, -1
        assert found.difference(0, other).variance == pytest.approx(contrast @ covariance @ contrast)


def test_twelve_cases_of_two_rounds_have_eleven_degrees_of_freedom():
    found = noise_of(table(12, 2, 1))
    assert found.freedom == pytest.approx(11)
    assert found.difference(0, 1).freedom == pytest.approx(11)
    assert found.difference(0, 1).variance == pytest.approx((found.cases[0].variance + found.cases[1].variance) / 2)


@pytest.mark.parametrize("noises", [(0.02, 0.2), (0.01, 0.05, 0.1), (0.05, 0.05, 0.05, 0.5)])
def test_the_moderated_variance_is_that_of_the_most_likely_f_distribution(noises):
    # Here, because every process of the tests imports the modules, and SciPy takes a second of a core.
    from scipy import optimize, stats

    fit = noise._Fit(rows_of(table(12, 4, 6, noises=noises)), [1.0] * 12)
    squares, freedoms = numpy.array(fit.squares), numpy.array(fit.freedoms)

    def unlikely(logs):
        variance, prior = numpy.exp(logs)
        return -sum(stats.f.logpdf(squares / freedoms / variance, freedoms, prior) - logs[0])

    variance, prior = noise._prior(fit.squares, fit.freedoms)
    best = optimize.minimize(unlikely, [numpy.log(0.01), 1.0], method="Nelder-Mead", options={"xatol": 1e-6})
    assert prior == pytest.approx(max(2, numpy.exp(best.x[1])), rel=2**0.25 - 1)  # the nearest step of the grid
    given = optimize.minimize_scalar(lambda log: unlikely([log, numpy.log(prior)]), bounds=(-14, 0), method="bounded")
    assert variance == pytest.approx(numpy.exp(given.x), rel=1e-3)
    expected = (prior * variance + squares[3]) / (prior + freedoms[3])
    assert noise._moderated(squares[3], freedoms[3], variance, prior) == pytest.approx(expected)


def test_a_case_noisier_than_the_rest_keeps_noise_of_its_own():
    found = noise_of(table(12, 5, 7, noises=(0.5,) + (0.05,) * 11))
    assert found.cases[0].variance > 10 * found.cases[1].variance
    assert found.cases[0].freedom < found.freedom / 3


def test_equal_figures_have_no_noise():
    found = noise_of({case: {1: case, 2: case + 0.5, 3: case} for case in range(4)})
    assert found.difference(1, 0).variance == pytest.approx(0, abs=1e-20)
    assert found.difference(1, 0).estimate == pytest.approx(1)


def test_welch_and_satterthwaite_agree():
    from scipy import stats

    draw = random.Random(9)
    one, two = ([draw.gauss(0, sigma) for _ in range(count)] for sigma, count in ((1, 5), (3, 8)))
    parts = [(numpy.var(side, ddof=1) / len(side), len(side) - 1) for side in (one, two)]
    assert satterthwaite(parts) == pytest.approx(stats.ttest_ind(one, two, equal_var=False).df)


def test_a_singular_matrix_has_a_generalized_inverse():
    matrix = [[2.0, -1.0, -1.0], [-1.0, 2.0, -1.0], [-1.0, -1.0, 2.0]]
    found = numpy.array(noise.generalized_inverse(matrix))
    assert numpy.allclose(numpy.array(matrix) @ found @ numpy.array(matrix), matrix)
