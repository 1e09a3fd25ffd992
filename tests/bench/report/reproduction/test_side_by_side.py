"""Published and measured figures side by side: ratios and verdicts."""

from __future__ import annotations

import pytest

from bench.report import numbers
from bench.report.reproduction import claims, page, side_by_side
from bench.report.reproduction.measured import MeasuredFigures
from tests.bench.report.pages import rows_of
from tests.bench.report.reproduction.test_claims import rating
from tests.bench.report.reproduction.tiny import TINY


def test_ratios_are_against_each_sides_own_baseline(folder):
    found = side_by_side.read(folder)
    lines = {row.title: row.figures for row in found.rows}
    run_of = {(row.stack, row.layer): row for row in found.reports[0].main_panels[0].rows}
    rate, memory, lowest = lines["Nginx"]
    assert (rate.published, rate.published_ratio) == (25, 2.5)
    assert rate.measured == run_of["nginx-uwsgi", "none"].rate
    expected = rate.measured.median / run_of["gunicorn", "none"].rate.median
    assert rate.ratio.median == pytest.approx(expected, rel=0.05)
    assert (memory.published, memory.published_ratio) == (None, None)
    assert memory.measured.median == run_of["nginx-uwsgi", "none"].memory_total.median
    assert lowest.measured.median < rate.measured.median
    assert lines["Files"][0].published_ratio is None
    assert lines["Files"][0].ratio.median > 100
    assert lines["Gone"][0].measured is None
    assert lines["Gone"][0].why == "two is not installed"


def test_conclusions_are_computed(folder):
    found = {item.claim: item for item in side_by_side.read(folder).verdicts}
    verdicts = [item.verdict for item in found.values()]
    holds, wrong, unknown = claims.HOLDS, claims.NOT, claims.NOT_MEASURED
    assert verdicts == [holds, wrong, holds, holds, holds, unknown, unknown]
    files = found["Files are a hundred times faster."]
    assert files.sentence.startswith("`staticgenerator` serves ")
    assert f"{files.measured.median:.0f} times the requests/s of `none`, both with `nginx-uwsgi` (" in files.sentence
    assert files.sentence.endswith(" over 5 rounds); published 200.")
    assert found["The lost one is slow."].sentence == "Not measured: `two` on `home`: two is not installed."
    assert found["Nobody tries it."].sentence == "Not measured: it is gone."
    assert found["It fails."].sentence.startswith("At 50 connections, `uwsgi` with `fragments` failed in 1 of 5 trials")
    assert claims.summary(list(found.values())) == (
        "4 of 7 published conclusions hold here, 1 does not and 2 were not measured."
    )


def test_too_few_requests_do_not_disprove_what_began_later(folder, monkeypatch):
    place = {"stack": "nginx-uwsgi", "layer": "none", "workload": "home"}
    asked = MeasuredFigures(side_by_side.read(folder).reports)
    steady = rating()
    monkeypatch.setattr(MeasuredFigures, "stability", lambda self, at: (steady, ""))
    most = asked.most_requests(place)
    assert most == max(
        trial.requests_total
        for trial in asked.reports[0].run.trials
        if trial.stack == "nginx-uwsgi" and trial.layer == "none" and trial.requests_total
    )
    claim = {"claim": "It falls over.", "left": place, "rating": "LOW"}
    (enough,) = claims.verdicts({"claims": [{**claim, "began_at_request": most}]}, asked)
    (few,) = claims.verdicts({"claims": [{**claim, "began_at_request": most + 1}]}, asked)
    assert (enough.verdict, few.verdict) == (claims.NOT, claims.INCONCLUSIVE)
    assert few.sentence.endswith(f"the published trouble began at about {most + 1:,}.")


def test_a_column_of_ratings_has_reasons_and_no_ratios(folder, monkeypatch):
    column = {"key": "stability", "title": "stability", "metric": "stability"}
    rows = [{**row, "stability": "HIGH"} for row in TINY["rows"]]
    monkeypatch.setitem(TINY, "columns", [*TINY["columns"], column])
    monkeypatch.setitem(TINY, "rows", rows)
    found = side_by_side.read(folder)
    (cells,) = [row.figures for row in found.rows if row.title == "Gunicorn"]
    (row,) = [row for row in rows_of(page.render(found)) if row[0].startswith("Gunicorn") and row[1] == "HIGH"]
    assert row[2:] == [cells[-1].measured, "; ".join(cells[-1].reasons) or numbers.DASH]


def test_a_median_of_stacks_says_of_how_many(folder):
    found = {item.claim: item for item in side_by_side.read(folder).verdicts}
    assert " of the median of all of them, all 3 measured (" in found["The middle one is slow."].sentence
