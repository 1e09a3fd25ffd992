"""The section of what Locust counted: there when it ran, with what its figures mean, and in no other figure."""

from __future__ import annotations

from bench.report import html, locust
from bench.results.folder import Folder, read_run
from bench.results.locust import LocustFailure, LocustFigures, LocustRequests
from tests.bench.report.pages import Page, made, read, rows_of

PAGE = LocustRequests("GET", "/page", 1200, 3, 119.5, 12.3, 10, 28, 150, 1900.5)
EVERY = LocustRequests("", "Aggregated", 1200, 3, 119.5, 12.3, 10, 28, 150, 1900.5)
FIGURES = LocustFigures(
    version="2.47.0",
    locustfile="mine.py",
    hosts={"load1": 2, "load2": 1},
    users=30,
    users_per_second=10,
    duration_s=10,
    started_at="2026-11-22T20:00:00+00:00",
    requests=(PAGE, EVERY),
    failures=(LocustFailure("GET", "/page", "HTTPError('<b>502</b>')", 3),),
    deployed="one with layer none",
    raw="raw/locust",
)
CELLS = ["1,200", "3", "120", "12.3", "10.0", "28.0", "150", "1,900"]


def test_its_figures_stand_in_a_section_of_their_own(tmp_path):
    directory = made(tmp_path, rounds=1)
    Folder(directory).append_locust(FIGURES)
    assert read_run(directory).locust == (FIGURES,)
    report = read(directory)
    page = Page(html.render(report, ()))
    assert "Locust" in page.texts("h2") and locust.MEANING in page.texts("p")
    assert "mine.py on one with layer none" in page.texts("h3")
    asked = "Locust 2.47.0: 30 users, 10.0 more each second, 10.0 s, from load1 with 2 workers, load2 with 1 worker."
    assert any(text.startswith(asked) for text in page.texts("p"))
    assert "HTTPError('<b>502</b>')" in page.texts("td")
    shown = rows_of(html.render(report, ()))
    assert ["GET", "/page", *CELLS] in shown and ["", "Aggregated", *CELLS] in shown


def test_a_run_without_it_has_no_such_section(tmp_path):
    report = read(made(tmp_path, rounds=1))
    assert "Locust" not in html.render(report, ())
