"""The report of a run that sought capacities: the rates that held, visitors, and latency over load."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.report.arrange import arrange
from bench.report.comparison import compare
from bench.report.numbers import DASH
from bench.report.plots import Plots
from bench.report.write import write_report
from bench.results.folder import read_run
from tests.bench.report import report_folder
from tests.bench.report.pages import Page, picked, rows_of, shown, table_row
from tests.bench.results.run_data import at_rate, failed

LAYERS = ("none", "site-middleware")
# Layer -> what it holds in each of three rounds.
HELD = {"none": (95, 100, 106), "site-middleware": (500, 530, 530)}


def written(folder: Path, change=lambda trial: trial, sizes: tuple[str, ...] = ("unlimited",)) -> Path:
    """A run of one stack with two layers, whose staircases are cut down to the rates around their ends."""
    report_folder.make(folder, workloads=("home",), change=lambda trial: None)
    info = json.loads((folder / "run.json").read_text())
    info["plan"] |= {"mode": "open", "levels": [], "capacity": "p95=200ms", "margin": 0.11, "stacks": ["gunicorn"]}
    info["plan"]["layers"] = list(LAYERS)
    info["plan"]["sizes"] = list(sizes)
    info["cases"] = [
        case | {"size": size, "case_id": case["case_id"].replace("unlimited", size)}
        for case in info["cases"]
        if case["stack"] == "gunicorn" and case["layer"] in LAYERS
        for size in sizes
    ]
    (folder / "run.json").write_text(json.dumps(info | {"skips": []}))
    (folder / "verify.jsonl").unlink()
    (folder / "workloads.json").write_text(json.dumps({"home": ["/", "/static/site.css"]}))
    run = report_folder.Folder(folder)
    for case in info["cases"]:
        identity = {name: case[name] for name in ("case_id", "stack", "layer", "workload", "size")}
        for number, held in enumerate(HELD[case["layer"]], 1):
            for rate, latency in ((50, 20.0), (held, 90.0), (held * 1.06 // 1, 450.0)):
                trial = change(replace(at_rate(int(rate), latency, number), **identity))
                run.append_trial(trial)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return written(tmp_path_factory.mktemp("capacity") / "run")


def test_a_row_is_a_case_at_its_capacity(folder):
    (panel,) = arrange(read_run(folder)).panels
    assert panel.setting.load == "p95 within 200 ms"
    rates = {row.layer: (row.rate.median, row.rate.low, row.rate.high, row.rate.count) for row in panel.rows}
    assert rates == {"none": (100, 95, 112, 3), "site-middleware": (530, 500, 561, 3)}
    assert [sorted(row.ok) for row in panel.rows] == [[1, 2, 3]] * 2
    assert panel.row("gunicorn", "site-middleware").times_none.median == pytest.approx(5.26, abs=0.01)


def test_the_answer_compares_capacities(folder):
    said = picked(arrange(read_run(folder)))
    assert said[0].startswith("Pick `gunicorn` with `site-middleware`: on `home`, it serves 5.")


def test_the_page_has_the_capacities_with_their_visitors(folder):
    text = shown(folder)
    cells = table_row(text, "gunicorn", "none", 7)
    assert cells == ["gunicorn", "none", "100", "95.0 to 112", "180,000", "500", "112 requests/s: p95 450 ms"]
    assert "A visitor asks for 1 page in 2 requests and stays 10 s on each page." in text


def test_latency_over_load_is_a_chart_with_the_limit(folder):
    page = Page(shown(folder))
    assert "p95 in ms over requests/s, gunicorn" in page.texts("title")
    assert {"none", "site-middleware", "limit"} <= set(page.texts("text", "name"))


def test_every_rate_that_was_tried_is_in_a_table(folder):
    rows = [row for row in rows_of(shown(folder)) if row[:2] == ["gunicorn", "none"] and len(row) == 8]
    rates = {row[2]: row for row in rows}
    assert rates["50"][3:] == ["3 of 3", "20.0", "50.0", "8.00", DASH]
    assert rates["112"][3:] == ["0 of 1", "450", "112", "17.9", DASH]


def test_the_queue_over_load_is_a_chart_and_all_deployments_are_in_one(folder):
    page = Page(shown(folder))
    assert "requests in flight over requests/s, gunicorn" in page.texts("title")
    report = arrange(read_run(folder))
    plots = Plots((report,))
    queue = plots.data[plots.name("queue", report.main_panels[0])]
    line = queue.lines[0]
    assert (line.name, line.x[0], line.y[0]) == ("gunicorn with none", 50.0, 8.0)


def test_two_capacity_runs_are_compared_by_their_capacities(folder):
    run = read_run(folder)
    cases = compare(run, run).cases
    assert [(case.before.median, case.verdict) for case in cases] == [(100, "inconclusive"), (530, "inconclusive")]


def test_a_case_that_holds_no_rate_says_so(tmp_path):
    def slow(trial):
        return replace(trial, histogram=at_rate(1, 900).histogram) if trial.layer == "none" else trial

    folder = written(tmp_path / "run", slow)
    row = arrange(read_run(folder)).panels[0].row("gunicorn", "none")
    assert (row.outcome, row.skip, row.rate) == ("skipped", "no rate holds p95 within 200 ms", None)
    assert "skipped" in table_row(write_report(folder).read_text(), "gunicorn", "none", 7)


def test_what_ended_a_staircase_besides_the_site_leaves_its_upper_end_open(tmp_path):
    def limited(trial):
        reason = "tool: the load tool used 95% of the CPU time it can use"
        return replace(trial, status="voided", reason=reason) if trial.level > 530 else trial

    text = write_report(written(tmp_path / "run", limited)).read_text()
    cells = table_row(text, "gunicorn", "site-middleware", 7)
    assert cells[3] == "500 or more"
    assert cells[6] == "561 requests/s: tool: the load tool used 95% of the CPU time it can use"


def test_a_case_that_failed_before_its_load_is_failed(tmp_path):
    folder = written(tmp_path / "run", lambda trial: failed(trial, came_back=None) if trial.layer == "none" else trial)
    assert arrange(read_run(folder)).panels[0].row("gunicorn", "none").outcome == "failed"


def test_sizes_stand_side_by_side(tmp_path):
    def smaller(trial):
        slow = trial.size == "bronze" and trial.level > 50
        return replace(trial, histogram=at_rate(1, 900).histogram) if slow else trial

    folder = written(tmp_path / "run", smaller, sizes=("bronze", "silver"))
    cells = table_row(shown(folder), "gunicorn", "none", 4)
    assert cells == ["gunicorn", "none", "50.0 (50.0 to 106)", "100 (95.0 to 112)"]
