"""The rows of a report: failed, repeated and voided rounds, levels, and pooled percentiles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.figures import histogram
from bench.report import gaps
from bench.report.arrange import arrange
from bench.report.write import write_report
from bench.results.folder import Folder, read_run
from tests.bench.report import report_folder
from tests.bench.report.pages import Page, made, read, shown


def test_a_round_that_failed_is_marked_and_the_others_count(plain):
    run = arrange(read_run(plain))
    row = next(
        row for row in run.rows if (row.stack, row.layer, row.setting.workload) == ("uwsgi", "fragments", "home")
    )
    assert (row.rate.count, len(row.failed)) == (2, 1)
    text = shown(plain)
    assert "2 of 3 *" in Page(text).texts("td")
    assert "not ready after 20 s on its port" in Page(text).texts("td")


def test_a_round_measured_again_after_a_failure_counts(tmp_path):
    folder = report_folder.make(tmp_path / "run", workloads=("home",))
    again = next(
        trial
        for trial in read_run(folder).trials
        if (trial.stack, trial.layer, trial.round) == ("uwsgi", "fragments", 1)
    )
    Folder(folder).append_trial(replace(again, round=2, trial_id="again"))
    assert not gaps.gaps(arrange(read_run(folder)))


def test_trials_that_failed_for_one_reason_are_one_line(plain):
    found = gaps.gaps(arrange(read_run(plain)))
    assert [(gap.outcome, gap.reason, gap.count) for gap in found] == [
        ("failed", "server stopped during the trial: worker was killed (signal 9)", 3),
        ("failed", "not ready after 20 s on its port", 1),
    ]
    ((case,), _) = (gap.cases for gap in found)
    assert (case.row.stack, [trial.round for trial in case.trials]) == ("nginx-gunicorn", [1, 2, 3])


def test_the_answer_is_for_the_highest_level(tmp_path):
    folder = report_folder.make(tmp_path / "run", levels=(10, 50), workloads=("home",))
    arranged = arrange(read_run(folder))
    assert [(panel.setting.level, panel.main) for panel in arranged.panels] == [(50, True), (10, False)]
    text = write_report(folder).read_text(encoding="utf-8")
    assert "requests/s by level" in text
    assert arranged.counts()["measured"] == 14  # a case is one case at however many levels


def test_percentiles_pool_the_requests_of_all_rounds(tmp_path):
    """One slow round among five: the mean of its rounds' p99 would be 208 ms, the p99 of all requests is 1,000."""

    def change(trial):
        if (trial.stack, trial.layer) != ("uwsgi", "none") or trial.status != "ok":
            return None
        slow = 200 if trial.round == 5 else 0
        counts = [(10_000, 2_000 - slow), (1_000_000, slow)]
        own = 1000.0 if slow else 10.0
        return replace(
            trial,
            histogram=histogram.encode(histogram.of(counts)),
            latency_p50_ms=10.0,
            latency_p99_ms=own,
            latency_p999_ms=None,
        )

    row = read(made(tmp_path, change)).main_panels[0].row("uwsgi", "none")
    figure = row.figure("latency_p99_ms")
    assert figure.median == pytest.approx(1000, rel=0.01)
    assert (figure.low, figure.count) == (10.0, 5)
    assert row.figure("latency_p999_ms").median == pytest.approx(1000, rel=0.01)
    assert row.figure("latency_p50_ms").median == pytest.approx(10, rel=0.01)


def test_percentiles_without_histograms_are_medians_of_rounds(tmp_path):
    row = read(made(tmp_path)).main_panels[0].row("uwsgi", "none")
    assert row.figure("latency_p99_ms").median == sorted(row.by_round("latency_p99_ms").values())[2]
