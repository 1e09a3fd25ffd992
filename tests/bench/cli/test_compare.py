"""Two runs side by side: verdicts only if the intervals allow one, and every refusal in one line."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bench.cli import compare
from bench.errors import BenchError
from bench.measure.records.folder import read_run
from bench.measure.records.records import LoadTool
from bench.measure.report import comparison
from tests.bench.measure.records.run_data import changed
from tests.bench.measure.report import report_folder
from tests.bench.measure.run.fake_sites import arguments


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def run(before, after, capsys, *words):
    status = compare.main(arguments([str(before), str(after), *words], compare))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def verdicts(before, after, capsys, *words):
    """Case -> who is ahead of whom, as a program reads the output."""
    document = json.loads(run(before, after, capsys, "--json", *words)[1])
    return {
        (case["stack"], case["layer"], case["workload"]): case["best"] or case["verdict"] for case in document["cases"]
    }


def line_of(out: str, case: str) -> list[str]:
    return next(line for line in out.splitlines() if line.startswith(f"{case} ")).split()


def test_a_real_difference_is_named_and_the_same_again_is_not(tmp_path, capsys):
    before = report_folder.make(tmp_path / "a")
    after = report_folder.make(tmp_path / "b", factor=2.0)
    same = report_folder.make(tmp_path / "c", seed=8)
    by_case = verdicts(before, after, capsys)
    # Of the 27 measured cases two give wrong responses and are left out, as is a failed one.
    assert (len(by_case), set(by_case.values())) == (25, {"B"})
    assert ("gunicorn", "page-cache", "home") not in by_case
    assert ("nginx-gunicorn", "fragments", "session") not in by_case
    assert set(verdicts(after, before, capsys).values()) == {"A"}
    assert not {"A", "B"} & set(verdicts(before, same, capsys).values())


def test_the_table_has_rates_ratio_interval_and_verdict(tmp_path, capsys):
    def fixed(rates):
        return lambda trial: (
            changed(trial, requests_per_second=rates[trial.round - 1])
            if trial.status == "ok" and (trial.stack, trial.layer) == ("uwsgi", "none")
            else None
        )

    before = report_folder.make(tmp_path / "a", workloads=("home",), change=fixed([100.0, 110.0, 90.0]))
    after = report_folder.make(tmp_path / "b", workloads=("home",), change=fixed([250.0, 260.0, 240.0]))
    status, out, err = run(before, after, capsys)
    _, a, b, ratio, low, _, high, *verdict = line_of(out, "uwsgi~none~home")
    assert (status, err, a, b, ratio, verdict) == (0, "", "99.7", "250", "2.51", ["B", "leads"])
    assert 1.5 < float(low) < 2.51 < float(high) < 4


def test_capacities_are_compared_by_what_held_and_what_did_not(tmp_path, capsys):
    """Rounds that all end at the same two steps differ by a step and prove nothing."""
    runs = (("a", 500), ("b", 530), ("c", 800))
    folders = [report_folder.capacity(tmp_path / name, {"none": (held,) * 3}) for name, held in runs]
    key = ("gunicorn", "none", "home")
    assert verdicts(folders[0], folders[1], capsys)[key] == "inconclusive"
    assert verdicts(folders[0], folders[2], capsys)[key] == "B"


def test_a_narrow_terminal_gets_each_case_over_its_figures(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    report_folder.make(tmp_path / "a", workloads=("home", "session"))
    report_folder.make(tmp_path / "b", workloads=("home",), factor=2.0)
    monkeypatch.chdir(tmp_path)
    lines = run("a", "b", capsys)[1].splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[lines.index("nginx-uwsgi~none~home") + 1].endswith("B leads")


def test_cases_of_only_one_run_are_listed(tmp_path, capsys):
    before = report_folder.make(tmp_path / "a")
    after = report_folder.make(tmp_path / "b", workloads=("home",))
    _, out, _ = run(before, after, capsys)
    (line,) = [line for line in out.splitlines() if line.startswith("measured in A only: ")]
    assert "gunicorn~none~session~unlimited~50~sqlite" in line
    assert "measured in B only" not in out


def test_levels_distinguish_cases_only_if_they_differ(tmp_path, capsys):
    before = report_folder.make(tmp_path / "a", levels=(10, 50))
    after = report_folder.make(tmp_path / "b", levels=(10, 50))
    assert line_of(run(before, after, capsys)[1], "uwsgi~none~home~50")
    single = report_folder.make(tmp_path / "c", levels=(50,))
    assert line_of(run(single, before, capsys)[1], "uwsgi~none~home")


def test_unlike_runs_are_refused_with_a_line_for_each_difference_or_compared_with_warnings(tmp_path, capsys):
    usual, configs = {"governor": "performance", "limits": {"open files": "1024"}}, {"a~none/nginx.conf": "1"}
    machine = report_folder.environment(**usual, configs=configs | {"a~none/app.ini": "2"})
    other = report_folder.environment(
        cpu_model="Example 4000",
        cores=8,
        memory_bytes=32 * 1024**3,
        load_tool=LoadTool("closedloop", "2.0", True),
        packages={"Django": "6.1", "gunicorn": "27.0.1"},
        governor="powersave",
        limits={"open files": "64"},
        configs=configs | {"a~none/app.ini": "3"},
    )
    before = report_folder.make(tmp_path / "a", machine=machine)
    after = report_folder.make(tmp_path / "b", machine=other)
    with pytest.raises(BenchError) as refusal:
        run(before, after, capsys)
    assert str(refusal.value).startswith(
        f"{before} and {after} come from different environments: CPUs differ: Example 3000"
    )
    assert str(refusal.value).endswith("; --force compares them anyway")
    _, _, err = run(before, after, capsys, "--force")
    assert err.splitlines() == [
        "warning: CPUs differ: Example 3000 (test data) in A, Example 4000 in B",
        "warning: cores differ: 2 in A, 8 in B",
        "warning: memory sizes differ: 8.00 GiB in A, 32.0 GiB in B",
        "warning: governors differ: performance in A, powersave in B",
        "warning: limits differ: open files 1024 in A, open files 64 in B",
        "warning: load tools differ: wrk 4.1.0 in A, closedloop 2.0 in B",
        "warning: packages differ (A / B): Django 5.2.19 / 6.1",
        "warning: rendered configurations differ: a~none/app.ini",
    ]
    run_of = read_run(before)
    opened = replace(run_of, info=replace(run_of.info, plan=replace(run_of.info.plan, mode="open", duration_s=99.0)))
    assert list(comparison.warnings(run_of, opened)) == [
        "modes differ: closed in A, open in B",
        "seconds of load differ: 10 in A, 99 in B",
    ]


def test_the_same_cases_on_another_database_are_compared_with_a_warning(tmp_path, capsys):
    before = report_folder.make(tmp_path / "a")
    after = report_folder.make(tmp_path / "b", database="postgresql", factor=2.0)
    _, out, err = run(before, after, capsys, "--force")
    assert err.splitlines() == ["warning: databases differ: sqlite in A, postgresql in B"]
    assert line_of(out, "uwsgi~none~home")[-2:] == ["B", "leads"]


def test_runs_without_a_shared_case_are_refused(tmp_path, capsys):
    before = report_folder.make(tmp_path / "a", workloads=("home",))
    after = report_folder.make(tmp_path / "b", workloads=("session",))
    with pytest.raises(BenchError) as refusal:
        run(before, after, capsys)
    assert str(refusal.value) == (
        f"{before} and {after} share no measured case; compare runs of the same stacks, layers, workloads and levels"
    )


def test_hostile_names_cannot_break_a_line(tmp_path):
    first = report_folder.make(tmp_path / "a", hostile=True)
    second = report_folder.make(tmp_path / "b")
    result = comparison.compare(read_run(first), read_run(second))
    lines = comparison.render(result, first, second, 80)
    assert all("\n" not in line and "\x1b" not in line for line in (*lines, *result.warnings))
