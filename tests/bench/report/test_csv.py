"""The report as CSV: one line a trial."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import pytest

from bench.report import csv as csv_report
from bench.report.write import write_report
from bench.results.folder import read_run
from tests.bench.report import report_folder
from tests.bench.report.pages import made


def test_csv_has_a_line_for_each_trial_and_empty_nulls(plain):
    text = write_report(plain, "csv").read_bytes().decode("utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    trials = read_run(plain).trials
    assert len(rows) == len(trials)
    assert {"requests_per_second", "latency_p99_ms", "memory_peak_bytes:nginx", "cpu_seconds:uwsgi"} <= rows[0].keys()
    for row, trial in zip(rows, trials, strict=True):
        assert row["trial_id"] == trial.trial_id
        if trial.status == "failed":
            assert row["requests_per_second"] == row["latency_p50_ms"] == row["memory_peak_bytes_total"] == ""
        else:
            assert float(row["requests_per_second"]) == trial.requests_per_second
        if trial.latency_p99_ms is None:
            assert row["latency_p99_ms"] == ""
    first = next(trial for trial in trials if trial.status == "ok" and trial.cpu_seconds)
    row = next(row for row in rows if row["trial_id"] == first.trial_id)
    per_thousand = sum(first.cpu_seconds.values()) / first.requests_total * 1000
    assert float(row["cpu_seconds_per_1000_requests"]) == pytest.approx(per_thousand)


def test_csv_holds_no_formulas(tmp_path):
    cases = read_run(report_folder.make(tmp_path / "cases", rounds=1)).info.cases
    change = lambda trial: report_folder.failed(cases[0], 50, trial.round, "=cmd|' /C calc'!A0")  # noqa: E731
    folder = report_folder.make(tmp_path / "run", rounds=1, change=change)
    text = write_report(folder, "csv").read_text(encoding="utf-8")
    assert {row["reason"] for row in csv.DictReader(text.splitlines())} == {"'=cmd|' /C calc'!A0"}


def test_a_cell_of_the_csv_is_a_value_or_json(tmp_path):
    def change(trial):
        return replace(trial, statuses={"200": 5, "503": 1}, thirds=(1.0, 2.0, 3.0), threads={"nginx": 3})

    folder = made(tmp_path, lambda trial: change(trial) if trial.status == "ok" else trial, rounds=1)
    row, *_ = csv.DictReader(write_report(folder, "csv").read_text("utf-8").splitlines())
    assert json.loads(row["statuses"]) == {"200": 5, "503": 1}
    assert json.loads(row["thirds"]) == [1.0, 2.0, 3.0]
    assert row["threads:nginx"] == "3"
    assert not set(csv_report.EXCLUDED) & row.keys()
