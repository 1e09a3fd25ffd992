"""Stability ratings in the report."""

from __future__ import annotations

from dataclasses import replace

from bench.report import (
    ratings,
)
from bench.report.write import write_report
from bench.results import stability
from tests.bench.report import report_folder
from tests.bench.report.pages import Page, made, picked, read


def test_every_case_is_rated_with_reasons(tmp_path):
    def change(trial):
        killed = (trial.stack, trial.layer) == ("gunicorn", "none")
        return replace(trial, oom_kills=2 if killed and trial.round == 1 else 0, came_back=True)

    folder = made(tmp_path, change)
    found = {(item.stack, item.layer): item.rating for item in ratings.rated(read(folder))}
    assert found["gunicorn", "none"].rating == "LOW"
    assert found["nginx-uwsgi", "none"].rating == "HIGH"
    page = Page(write_report(folder).read_text("utf-8"))
    assert "LOW" in page.texts("td", "low")
    assert page.texts("td", "high") == [], "what is HIGH is counted, not listed"
    count = sum(item.rating.rating == "HIGH" for item in ratings.rated(read(folder)))
    assert any(text.startswith(f"{count} of ") for text in page.texts("p"))
    assert any("2 processes killed for lack of memory" in cell for cell in page.texts("td"))
    assert any(said.endswith("is HIGH.") for said in picked(read(folder)))
    only = report_folder.make(
        tmp_path / "one", workloads=("home",), change=lambda trial: change(trial) if trial.stack == "gunicorn" else None
    )
    assert "Its stability is HIGH." in picked(read(only))
    none = ratings.worst(read(only), "gunicorn", "none")
    assert (none.rating, none.reasons[0]) == ("LOW", "2 processes killed for lack of memory")


def test_the_criteria_are_listed_with_their_bounds():
    assert set(ratings.CRITERIA) == set(stability.BOUNDS)
    assert ("errors", "share of failed requests", "0 %", "1 %") in ratings.bounds()
    assert ("restarts", "worker processes replaced during a trial", "0", "3") in ratings.bounds()
