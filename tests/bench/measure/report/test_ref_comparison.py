"""Commits of a project in one run: verdicts, queries, and the formats of continuous integration."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bench.measure.records.folder import Folder, read_run
from bench.measure.report import ci, ref_comparison, write
from bench.measure.report.comparison import verdict
from bench.measure.report.ref_comparison import (
    compare_refs,
    comparison_words,
    label_of,
    next_step,
    not_compared,
    with_label,
)
from bench.verify.outcome import Skip
from tests.bench.measure.records.run_data import changed
from tests.bench.measure.report import report_folder

FIRST, OTHER = "gunicorn@ref=main", "gunicorn@ref=tree"


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.80, 0.95, "slower"),
        (1.06, 1.30, "faster"),
        (0.96, 1.04, "same"),
        (0.90, 1.02, "inconclusive"),
        (0.0, float("inf"), "inconclusive"),
    ],
)
def test_a_verdict_needs_the_whole_interval(low, high, expected):
    assert verdict(low, high, 0.05) == expected


@pytest.mark.parametrize(
    ("stack", "label", "with_new"),
    [
        ("gunicorn@ref=main", "main", "gunicorn@ref=new"),
        ("gunicorn@processes=2,ref=main", "main", "gunicorn@processes=2,ref=new"),
        ("gunicorn", "", "gunicorn@ref=new"),
    ],
)
def test_a_stack_s_name_has_the_label(stack, label, with_new):
    assert label_of(stack) == label
    assert with_label(stack, "new") == with_new


def test_a_run_without_commits_has_none(tmp_path):
    assert compare_refs(read_run(report_folder.make(tmp_path / "run"))) == ()


def compared(folder, factor, queries, noise=0.0):
    """The comparisons of a run whose other commit has these requests/s and queries, with noise from round to round."""

    def as_commits(trial):
        label = {"gunicorn": FIRST, "uwsgi": OTHER}.get(trial.stack)
        if label is None or trial.layer != "none" or trial.status != "ok":
            return None
        number = queries[0 if label == FIRST else 1]
        rate = 1000.0 * (1 + trial.round / 1000)
        if label == OTHER:
            rate *= factor * (1 + noise * (-1) ** trial.round)
        result = changed(trial, requests_per_second=rate, queries_per_request=number)
        return replace(result, stack=label)

    directory = report_folder.make(folder, workloads=("home",), change=as_commits)
    (directory / "verify.jsonl").unlink()
    run = read_run(directory)
    plan = replace(run.info.plan, refs={"main": "0" * 40, "tree": ""})
    cases = [case for case in run.info.cases if case.stack in ("gunicorn", "uwsgi") and case.layer == "none"]
    cases = [replace(case, stack={"gunicorn": FIRST, "uwsgi": OTHER}[case.stack]) for case in cases]
    Folder(directory).write(replace(run.info, plan=plan, cases=tuple(cases), notes=("tree is the tree as it is",)))
    return directory, compare_refs(read_run(directory))


def test_a_commit_that_is_slower_is_named_and_one_more_query_too(tmp_path):
    _, (comparison,) = compared(tmp_path / "run", 0.8, (3.0, 4.0))
    assert (comparison.first, comparison.other, comparison.verdict) == ("main", "tree", "slower")
    assert comparison.case == "gunicorn none home 50"
    assert comparison.ratio == pytest.approx(0.8, rel=0.01)
    assert comparison.queries == (3.0, 4.0) and comparison.more_queries
    text = "\n".join(ref_comparison.render([comparison], 0.05))
    assert "gunicorn none home 50: tree makes 4 queries a request, main 3" in text


@pytest.mark.parametrize(
    ("factor", "noise", "sentence"),
    [
        (0.8, 0.0, "tree is slower than main: 0.800 times the requests/s, "),
        (1.25, 0.0, "tree is faster than main: 1.25 times the requests/s, "),
        (1.0, 0.0, "tree is as fast as main within 5 %: 1.00 times the requests/s, "),
        (0.8, 0.1, "Inconclusive: tree has 0.770 times the requests/s of main, "),
    ],
)
def test_the_first_line_of_a_run_is_the_verdict_that_fail_if_takes(tmp_path, factor, noise, sentence):
    directory, (item,) = compared(tmp_path / "run", factor, (3.0, 3.0), noise)
    document, _ = write.document([directory], directory / write.NAME)
    assert document.answer[0].startswith(sentence)
    assert document.answer[0].endswith(" (95 % confidence).")
    more = [line for line in document.answer[1:] if line.startswith("Next: ")]
    assert bool(more) == (item.verdict == "inconclusive")


def test_a_proven_loss_comes_first_if_the_best_of_all_cases_is_not_decided(tmp_path):
    """A race until decided needs more certainty of the best than the comparison of two commits."""
    directory, _ = compared(tmp_path / "run", 0.8, (3.0, 3.0), 0.05)
    run = read_run(directory)
    Folder(directory).write(replace(run.info, plan=replace(run.info.plan, until="decided")))
    (item,) = compare_refs(read_run(directory))
    document, _ = write.document([directory], directory / write.NAME)
    assert (document.boards[0].verdict, item.verdict) == ("inconclusive", "slower")
    assert document.answer[0].startswith("tree is slower than main: ")


@pytest.mark.parametrize(
    ("verdicts", "sentence"),
    [
        ([("tree", "slower"), ("new", "same")], "Compared with main, tree is slower; new is as fast."),
        (
            [("tree", "slower"), ("tree", "same"), ("tree", "same"), ("tree", "inconclusive")],
            "Compared with main, tree is slower in 1 of 4 cases, as fast in 2 and inconclusive in 1.",
        ),
    ],
)
def test_several_verdicts_are_counted_in_one_sentence(tmp_path, verdicts, sentence):
    _, (item,) = compared(tmp_path / "run", 0.8, (3.0, 3.0))
    items = [replace(item, other=label, verdict=each) for label, each in verdicts]
    assert ref_comparison.headline(items, 0.05) == sentence


def test_one_round_is_no_verdict_on_a_commit(tmp_path):
    _, (item,) = compared(tmp_path / "run", 0.8, (3.0, 3.0))
    only = replace(item, low=0.0, high=None, verdict="inconclusive")
    headline = "Inconclusive: the rounds prove no difference between main and tree."
    assert ref_comparison.headline([only], 0.05) == headline


def test_a_verdict_without_a_lower_bound_is_printed(tmp_path):
    """A capacity has none if no rate failed."""
    _, (item,) = compared(tmp_path / "run", 0.8, (3.0, 3.0))
    proven = replace(item, low=0.0, high=0.6, verdict="slower")
    assert ref_comparison.headline([proven], 0.05).startswith("tree is slower than main: ")


def test_the_first_lines_name_comparisons_without_a_verdict(tmp_path):
    directory, _ = compared(tmp_path / "run", 0.8, (3.0, 3.0))
    run = read_run(directory)
    more = tuple(replace(case, workload="login", case_id=f"{case.case_id}-login") for case in run.info.cases)
    Folder(directory).write(replace(run.info, cases=(*run.info.cases, *more)))
    document, _ = write.document([directory], directory / write.NAME)
    assert document.answer[0].startswith("tree is slower than main: ")
    assert document.answer[1] == "No verdict on gunicorn none login 50: tree: a commit has no trusted figures."


def test_a_query_more_is_named_if_time_cannot_decide(tmp_path):
    _, (comparison,) = compared(tmp_path / "run", 1.0, (3.0, 3.5))
    assert (comparison.verdict, comparison.more_queries) == ("same", True)
    _, (comparison,) = compared(tmp_path / "other", 1.0, (3.0, 3.0))
    assert (comparison.verdict, comparison.more_queries) == ("same", False)


def lacking(run):
    return [comparison_words(first, other) for first, other in not_compared(run)]


def next_of(run):
    """The remedy for what the run lacks."""
    return next_step(run, not_compared(run))


def test_a_commit_without_trusted_figures_is_not_compared(tmp_path):
    directory, _ = compared(tmp_path / "run", 1.0, (3.0, 3.0))
    run = read_run(directory)
    assert lacking(run) == []
    for commit in (FIRST, OTHER):
        others = tuple(trial for trial in run.trials if trial.stack != commit)
        own = (replace(trial, status="discarded", reason="tool: busy") for trial in run.trials if trial not in others)
        assert lacking(replace(run, trials=(*others, *own))) == ["gunicorn none home 50: tree"]
    # The other commit cannot run here.
    cases = tuple(case for case in run.info.cases if case.stack == FIRST)
    trials = tuple(trial for trial in run.trials if trial.stack == FIRST)
    only = replace(run, info=replace(run.info, cases=cases), trials=trials)
    assert lacking(only) == ["gunicorn none home 50: tree"]
    assert lacking(read_run(report_folder.make(tmp_path / "without commits"))) == []


def test_only_figures_that_another_attempt_may_give_are_a_reason_to_resume(tmp_path):
    directory, _ = compared(tmp_path / "run", 1.0, (3.0, 3.0))
    run = read_run(directory)
    own = tuple(trial for trial in run.trials if trial.stack == FIRST)
    others = tuple(trial for trial in run.trials if trial.stack != FIRST)
    for reason, helps in {
        "interference: other processes": True,
        "drift: less": True,
        "tool: at its limit": False,
        "interference: other processes; bodies: another page": False,
    }.items():
        discarded = tuple(replace(trial, status="discarded", reason=reason) for trial in own)
        advice = next_of(replace(run, trials=(*discarded, *others)))
        assert (f"--resume {directory}" in advice) == helps
        assert helps or (reason.rpartition("; ")[2] in advice and "--connections" in advice)
        at_a_rate = replace(run, info=replace(run.info, plan=replace(run.info.plan, mode="open")))
        assert helps or "--rate" in next_of(replace(at_a_rate, trials=(*discarded, *others)))
    # The time of the run was over.
    assert f"--resume {directory}" in next_of(replace(run, trials=own))

    skip = Skip(OTHER, "none", None, "it has no servers")
    info = replace(run.info, cases=tuple(case for case in run.info.cases if case.stack == FIRST), skips=(skip,))
    assert next_of(replace(run, info=info, trials=own)) == "tree cannot run here: it has no servers"
    for elsewhere in (replace(skip, layer="varnish"), replace(skip, size="silver")):
        other_info = replace(info, skips=(elsewhere,))
        assert f"--resume {directory}" in next_of(replace(run, info=other_info, trials=own))


def test_what_another_case_lacks_is_no_reason_against_resuming(tmp_path):
    directory, _ = compared(tmp_path / "run", 1.0, (3.0, 3.0))
    run = read_run(directory)
    *compared_anyway, last = (trial for trial in run.trials if trial.stack == FIRST)
    others = tuple(trial for trial in run.trials if trial.stack != FIRST)
    discarded = replace(last, status="discarded", reason="tool: at its limit", workload="elsewhere")
    busy = (replace(trial, status="discarded", reason="interference: busy") for trial in compared_anyway)
    assert f"--resume {directory}" in next_of(replace(run, trials=(*busy, discarded, *others)))


def test_the_formats_of_continuous_integration(tmp_path):
    directory, _ = compared(tmp_path / "run", 0.8, (3.0, 4.0))
    document, _ = write.document([directory], directory / write.NAME)
    runs = [read_run(directory)]
    text = ci.written(ci.GITHUB, runs, document)
    row = next(line for line in text.splitlines() if line.startswith("| gunicorn"))
    assert "`main` → `tree`" in row and "3 → 4" in row and row.endswith("**slower** |")
    action = json.loads(ci.written(ci.ACTION, runs, document))
    assert [(item["name"], item["unit"]) for item in action] == [
        (f"{FIRST} none home unlimited 50", "requests/s"),
        (f"{OTHER} none home unlimited 50", "requests/s"),
    ]
    assert action[1]["value"] == pytest.approx(800, rel=0.01)
    bencher = json.loads(ci.written(ci.BENCHER, runs, document))
    assert bencher[f"{OTHER} none home unlimited 50"]["throughput"]["value"] == action[1]["value"]
