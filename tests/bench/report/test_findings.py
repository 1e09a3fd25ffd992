"""The sentences about each panel are computed from the figures."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from bench.figures.ratios import Ratio
from bench.report import (
    findings,
)
from bench.report.arrange import arrange
from bench.report.write import write_report
from bench.results.folder import read_run
from tests.bench.report import pages, report_folder


def sentences(tmp_path, rates, **options) -> tuple[str, ...]:
    options = {"workloads": ("home",)} | options
    folder = report_folder.make(tmp_path / "run", change=pages.rates(rates), **options)
    (answer,) = findings.answers(arrange(read_run(folder)))
    return answer.sentences


def test_the_answer_is_computed_from_the_figures(tmp_path):
    said = sentences(
        tmp_path,
        {
            ("nginx-uwsgi", "none"): [100.0, 98.0, 102.0],
            ("nginx-uwsgi", "staticgenerator"): [1230.0, 1200.0, 1260.0],
            ("uwsgi", "none"): [80.0, 79.0, 81.0],
        },
    )
    assert said[0] == (
        "`nginx-uwsgi` with `staticgenerator` was fastest: median 1,230 requests/s "
        "(95 % confidence interval 1,200 to 1,260, 3 rounds), 12.3 times `none` on the same stack (100)."
    )
    assert re.fullmatch(
        r"Slower: `nginx-uwsgi` with `none`, 100 requests/s; the fastest serves 12\.3 times that \(12\.\d to 12\.\d\); "
        r"1 more case is slower by at least 15\.\d\N{MULTIPLICATION SIGN}\.",
        said[1],
    )
    assert said[-1] == (
        "Without a layer (`none`), `nginx-uwsgi` is the fastest with 100 requests/s, 1.25 times (1.23 to 1.27) `uwsgi`."
    )


def test_overlapping_intervals_are_a_tie(tmp_path):
    said = sentences(
        tmp_path,
        {
            ("nginx-uwsgi", "staticgenerator"): [1230.0, 1200.0, 1260.0],
            ("nginx-gunicorn", "staticgenerator"): [1210.0, 1190.0, 1250.0],
        },
    )
    assert "was fastest" not in " ".join(said)
    assert said[0] == (
        "`nginx-uwsgi` with `staticgenerator` ties with `nginx-gunicorn` with `staticgenerator` (1,210); it has the "
        "highest figure, median 1,230 requests/s "
        "(95 % confidence interval 1,200 to 1,260, 3 rounds); `none` was not measured on this stack, "
        "so there is no ratio."
    )
    assert re.fullmatch(
        r"One of those that tie is the fastest, with at most 1\.0\d times the requests/s of the others\.",
        said[1],
    )


def test_stacks_without_layers_are_compared_in_one_sentence(tmp_path):
    fast, slow = ("uwsgi", "none"), ("gunicorn", "none")
    said = sentences(tmp_path, {fast: [200.0, 202.0, 204.0], slow: [100.0, 101.0, 102.0]})
    assert (
        said[-1] == "The slowest is `gunicorn` with 101 requests/s; the fastest serves 2.00 times (2.00 to 2.00) that."
    )
    said = sentences(tmp_path / "near", {fast: [100.0, 150.0, 90.0], slow: [110.0, 95.0, 108.0]})
    assert [sentence for sentence in said if sentence.startswith("Even the slowest, ")]
    assert not [sentence for sentence in said if "is the fastest with" in sentence]


def test_rounds_that_differ_while_requests_stick_to_few_workers_are_explained(tmp_path):
    def sentence(name, rates, workers):
        def change(trial):
            found = pages.rates({("gunicorn", "none"): rates})(trial)
            return found and replace(found, requests_per_worker=workers[found.round % len(workers)])

        folder = report_folder.make(tmp_path / name, change=change, workloads=("home",))
        (answer,) = findings.answers(arrange(read_run(folder)))
        return [text for text in answer.sentences if text.startswith("The rounds of ")]

    even = [{"1": 33, "2": 32, "3": 32, "4": 31}]
    few = [{"1": 100, "2": 10, "3": 10, "4": 8}]
    # In one round a single worker answered all.
    one = [*even, {"1": 128}]
    assert sentence("both", [65.0, 138.0, 82.0], few) == [
        "The rounds of `gunicorn` with `none` differ by more than 25 %, and requests stick to few workers there: "
        "the busiest answered up to 3.12 times the mean, and which round has luck is chance."
    ]
    assert "up to 4.00 times the mean" in sentence("one", [65.0, 138.0, 82.0], one)[0]
    assert sentence("even", [65.0, 138.0, 82.0], even) == []
    assert sentence("steady", [100.0, 101.0, 102.0], few) == []


def test_one_round_is_named_as_such(tmp_path):
    said = sentences(tmp_path, {("uwsgi", "none"): [80.0], ("gunicorn", "none"): [70.0]}, rounds=1)
    assert (
        said[0]
        == "`uwsgi` with `none` has the highest figure, 80.0 requests/s in one round, which proves no difference."
    )
    assert said[1] == "Next: `gunicorn` with `none`, 70.0 requests/s."


def test_wrong_answers_are_never_called_fastest(tmp_path):
    said = sentences(
        tmp_path, {("gunicorn", "site-middleware"): [9e4, 9e4, 9e4], ("gunicorn", "none"): [70.0, 71.0, 72.0]}
    )
    assert said[0].startswith("`gunicorn` with `none` is the only case with figures here: 71.0 requests/s")


def test_errors_under_load_are_reported(tmp_path):
    said = sentences(tmp_path, {("gunicorn", "none"): [70.0, 71.0, 72.0]})
    assert re.fullmatch(r"It had 3 errors besides [\d,]+ answers\.", said[-1])


def test_a_run_of_failures_only_still_reports_them(tmp_path):
    def fail(trial):
        case = next(item for item in cases if item.case_id == trial.case_id)
        return report_folder.failed(case, trial.level_connections, trial.round, "it fell over")

    cases = read_run(report_folder.make(tmp_path / "cases", rounds=1)).info.cases
    folder = report_folder.make(tmp_path / "run", rounds=1, change=fail)
    text = write_report(folder).read_text(encoding="utf-8")
    assert "Nothing was measured, so there is nothing to pick. The reasons are under Left out." in text
    assert "Nothing was measured here; see" in text
    assert not (folder / "throughput.svg").exists()


def test_an_end_of_an_interval_that_bounds_nothing_is_left_out():
    assert findings.interval(Ratio(40.0, 3.4, 1e40, 1, 0.05)) == "at least 3.40"
    assert findings.interval(Ratio(40.0, 3.4, math.inf, 1, 0.05)) == "at least 3.40"
    assert findings.interval(Ratio(4.0, 3.4, 5.0, 5, 0.05)) == "3.40 to 5.00"
