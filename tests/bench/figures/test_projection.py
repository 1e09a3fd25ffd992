"""The projection of what more hosts would serve: laws that are known, noise that is known, and what must be refused."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from scipy import optimize

from bench import paths
from bench.figures.projection import FURTHEST, MAX_WIDTH, Point, Projection, Tier, project

LINEAR, CONTENDED, RETROGRADE = (100.0, 0.0, 0.0), (100.0, 0.08, 0.0), (100.0, 0.05, 0.02)
FOUR = (1, 2, 3, 4) * 3


def law(hosts: int, rate: float, contention: float, coherency: float) -> float:
    return rate * hosts / (1 + contention * (hosts - 1) + coherency * hosts * (hosts - 1))


def measured(true, numbers=FOUR, noise: float = 0.0, seed: int = 1) -> list[Point]:
    draw = random.Random(seed)
    return [Point(hosts, law(hosts, *true) * draw.gauss(1, noise)) for hosts in numbers]


def projected(true, numbers=FOUR, noise: float = 0.01, seed: int = 1, tiers=()) -> Projection:
    found = project(measured(true, numbers, noise, seed), tiers)
    assert found.refused == ""
    return found


@pytest.mark.parametrize("true", [LINEAR, CONTENDED, RETROGRADE], ids=["linear", "contended", "retrograde"])
def test_points_on_a_law_give_that_law(true):
    found = project(measured(true))
    for interval, parameter in zip((found.rate, found.contention, found.coherency), true, strict=True):
        assert interval.value == pytest.approx(parameter, abs=1e-6)
    assert [row.hosts for row in found.rows] == [5, 6, 7, 8]
    assert [row.law for row in found.rows] == pytest.approx([law(row.hosts, *true) for row in found.rows])
    assert found.residuals == pytest.approx([0] * 12, abs=1e-9)


def test_the_fit_is_that_of_scipy_in_its_usual_form():
    points = measured(CONTENDED, noise=0.01)
    hosts, rates = zip(
        *((point.hosts, point.rate) for point in sorted(points, key=lambda point: point.hosts)), strict=True
    )

    def usual(n, rate, contention, coherency):
        return rate * n / (1 + contention * (n - 1) + coherency * n * (n - 1))

    import numpy

    best, covariance = optimize.curve_fit(usual, numpy.array(hosts), rates, p0=CONTENDED, sigma=rates)
    found = project(points)
    values = [found.rate.value, found.contention.value, found.coherency.value]
    errors = numpy.sqrt(numpy.diag(covariance))
    assert all(abs(value - other) < error / 20 for value, other, error in zip(values, best, errors, strict=True))
    # 95 % of a t distribution with 9 degrees of freedom lie within 2.26 standard errors.
    assert found.contention.high - found.contention.low == pytest.approx(2 * 2.26 * errors[1], rel=0.1)
    assert found.residuals == pytest.approx(list(rates / usual(numpy.array(hosts), *best) - 1), abs=0.002)


@pytest.mark.parametrize("true", [LINEAR, CONTENDED, RETROGRADE], ids=["linear", "contended", "retrograde"])
@pytest.mark.parametrize("numbers", [(1, 2, 3) * 2, FOUR], ids=["six points", "twelve points"])
def test_the_band_holds_the_truth_about_as_often_as_it_says(true, numbers):
    held = []
    for seed in range(100):
        found = project(measured(true, numbers, 0.02, seed))
        if not found.refused:
            row = found.rows[-1]
            held.append(row.low <= law(row.hosts, *true) <= row.high)
    assert len(held) >= 85
    # 95 %, less three standard errors of so few.
    assert sum(held) / len(held) >= 0.885


def test_it_goes_no_further_than_twice_and_no_further_than_the_band_says_something():
    clear = projected(CONTENDED, noise=0.005)
    assert clear.rows[-1].hosts == FURTHEST * 4
    assert clear.ends == ""
    noisy = projected(CONTENDED, noise=0.05)
    last = noisy.rows[-1]
    assert last.hosts < FURTHEST * 4 and last.high <= MAX_WIDTH * last.low
    assert noisy.ends == (
        f"the band of {last.hosts + 1} web hosts is too wide: it ends at more than 2 times its beginning"
    )


def test_no_host_serves_more_than_one_alone():
    for seed in range(20):
        found = project(measured(LINEAR, FOUR, 0.02, seed))
        for row in found.rows:
            assert row.law <= row.hosts * found.rate.value + 1e-9
            assert row.high <= row.hosts * found.rate.high + 1e-9


def test_the_busiest_processors_bound_it():
    web = Tier("web", 1, (0.005,) * 12, grows=True)
    front = Tier("front", 2, (0.004, 0.0041, 0.0039))
    found = projected(LINEAR, tiers=[web, front])
    assert {row.tier for row in found.rows} == {"front"}
    assert found.rows[-1].bound == pytest.approx(500, rel=0.01)
    assert found.rows[-1].law > 600
    assert 480 < found.rows[-1].high < 550
    few = projected(LINEAR, tiers=[web])
    assert [row.bound for row in few.rows] == pytest.approx([1000, 1200, 1400, 1600])
    assert few.rows[0].low == projected(LINEAR).rows[0].low


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        (
            measured(LINEAR, (1, 2, 3, 3, 2)),
            "it takes 6 trials with 3 different numbers of web hosts, and there are 5 with 3",
        ),
        (
            measured(LINEAR, (1, 2) * 5),
            "it takes 6 trials with 3 different numbers of web hosts, and there are 10 with 2",
        ),
        (
            measured((100, -0.1, 0), noise=0.005),
            "the interval of contention is negative, -0.11 to -0.094: "
            "the requests/s grow faster than the number of hosts, or do not follow the law",
        ),
        (
            [Point(hosts, rate) for hosts, rate in zip((3, 3, 4, 4, 5, 5), (90, 700, 400, 60, 900, 100), strict=True)],
            "unidentified: the interval of one host's requests/s has no upper end",
        ),
        (
            [Point(hosts, law(hosts, *LINEAR) * share) for hosts in (1, 3, 9) for share in (0.86, 1.18)],
            "the band of 10 web hosts is too wide: it ends at more than 2 times its beginning",
        ),
        (
            [Point(hosts, rate + off) for hosts, rate in ((1, 90), (2, 200), (3, 240), (4, 410)) for off in (-1, 0, 1)],
            "the law does not describe them: the means of the numbers of hosts lie further from it than trials scatter",
        ),
    ],
    ids=["few", "two numbers", "negative", "unidentified", "wide", "misfit"],
)
def test_what_says_nothing_is_not_projected(points, reason):
    found = project(points)
    assert found.refused == reason
    assert found.rows == ()


def test_contention_that_can_be_anything_is_not_projected():
    refused = [project(measured(LINEAR, (1, 2, 3) * 2, 0.1, seed)).refused for seed in range(10)]
    assert any(reason.startswith("the interval of contention is too wide: ") for reason in refused)


def test_a_point_and_a_tier_have_figures():
    with pytest.raises(ValueError, match=r"not a point: 0 requests/s of 2 hosts"):
        Point(2, 0)
    with pytest.raises(ValueError, match="not a tier"):
        Tier("web", 2, ())


def test_nothing_else_imports_scipy():
    script = "import sys, bench.figures.projection, bench.cli.hosts; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=paths.PROJECT, check=False).returncode == 0
