"""Two runs side by side: verdicts only where the ranges allow one, and every refusal in one line."""

from __future__ import annotations

import argparse
from dataclasses import replace

import pytest

from bench.cli import compare
from bench.errors import BenchError
from bench.report import comparison
from bench.results.folder import read_run
from bench.results.records import LoadTool
from tests.bench.report import report_folder


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def run(before, after, capsys, *words):
    parser = argparse.ArgumentParser()
    compare.add_arguments(parser)
    status = compare.main(parser.parse_args([str(before), str(after), *words]))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def line_of(out: str, case: str) -> list[str]:
    return next(line for line in out.splitlines() if line.startswith(f"{case} ")).split()


def test_a_real_difference_is_named_and_the_same_again_is_inconclusive(tmp_path, capsys):
    before = report_folder.make(tmp_path / "a")
    after = report_folder.make(tmp_path / "b", factor=2.0)
    same = report_folder.make(tmp_path / "c", seed=8)
    status, out, err = run(before, after, capsys)
    assert (status, err) == (0, "")
    assert line_of(out, "nginx-uwsgi~none~home")[-1] == "faster"
    # Of the 27 measured cases two give wrong answers and are left out.
    assert "B is faster in 25, slower in 0, inconclusive in 0 (within chance or the margin of 5%)" in out
    assert line_of(run(after, before, capsys)[1], "nginx-uwsgi~none~home")[-1] == "slower"
    assert line_of(run(before, same, capsys)[1], "nginx-uwsgi~none~home")[-1] == "inconclusive"


def test_it_ends_with_the_differences_that_are_real_the_largest_first(tmp_path, capsys):
    def slower(trial):
        quick = trial.status == "ok" and (trial.stack, trial.layer) == ("uwsgi", "none")
        return replace(trial, requests_per_second=trial.requests_per_second / 4) if quick else None

    before = report_folder.make(tmp_path / "a", workloads=("home",))
    after = report_folder.make(tmp_path / "b", workloads=("home",), change=slower)
    lines = run(before, after, capsys)[1].splitlines()
    assert lines[-2] == "Real differences:"
    assert lines[-1].startswith("  uwsgi~none~home: B is slower, 0.250\N{MULTIPLICATION SIGN} (0.2")
    last = run(before, before, capsys)[1].splitlines()[-1]
    assert last == "No real difference: none exceeds both chance and the margin of 5%."


def test_other_configurations_limits_and_modes_are_unlike_too(tmp_path):
    def environment(**changes):
        return report_folder.environment(**{"governor": "performance", "limits": {"open files": "1024"}, **changes})

    configs = {"a~none/nginx.conf": "1", "a~none/app.ini": "2"}
    first = read_run(report_folder.make(tmp_path / "a", machine=environment(configs=configs)))
    other = environment(configs={**configs, "a~none/app.ini": "3"}, governor="powersave", limits={"open files": "64"})
    second = read_run(report_folder.make(tmp_path / "b", machine=other))
    assert list(comparison.warnings(first, second)) == [
        "governors differ: performance in A, powersave in B",
        "limits differ: open files 1024 in A, open files 64 in B",
        "rendered configurations differ: a~none/app.ini",
    ]
    opened = replace(second, info=replace(second.info, plan=replace(second.info.plan, mode="open")))
    assert "modes differ: closed in A, open in B" in list(comparison.warnings(first, opened))
    longer = replace(second, info=replace(second.info, plan=replace(second.info.plan, duration_s=99.0)))
    assert any(line.startswith("seconds of load differ: ") for line in comparison.warnings(first, longer))
    # What an older run did not keep is not unlike.
    old = read_run(report_folder.make(tmp_path / "c", machine=environment(governor=None, limits=None)))
    assert list(comparison.warnings(first, old)) == []


def test_medians_ranges_and_ratio_stand_beside_each_other(tmp_path, capsys):
    def fixed(rates):
        return lambda trial: (
            replace(trial, requests_per_second=rates[trial.round - 1])
            if trial.status == "ok" and (trial.stack, trial.layer) == ("uwsgi", "none")
            else None
        )

    before = report_folder.make(tmp_path / "a", workloads=("home",), change=fixed([100.0, 110.0, 90.0]))
    after = report_folder.make(tmp_path / "b", workloads=("home",), change=fixed([250.0, 260.0, 240.0]))
    _, out, _ = run(before, after, capsys)
    expected = "uwsgi~none~home 100 90.0 to 110 250 240 to 260 2.50\N{MULTIPLICATION SIGN} faster"
    assert line_of(out, "uwsgi~none~home") == expected.split()


def test_a_narrow_terminal_gets_each_case_over_its_figures(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    report_folder.make(tmp_path / "a", workloads=("home", "session"))
    report_folder.make(tmp_path / "b", workloads=("home",), factor=2.0)
    monkeypatch.chdir(tmp_path)
    lines = run("a", "b", capsys)[1].splitlines()
    assert max(map(len, lines)) <= 80
    figures = lines[lines.index("nginx-uwsgi~none~home") + 1].split()
    assert figures[-1] == "faster"
    assert len(figures) == 10  # two medians, two intervals of three words, ratio and verdict


def test_one_round_proves_nothing(tmp_path, capsys):
    before = report_folder.make(tmp_path / "a", rounds=1)
    after = report_folder.make(tmp_path / "b", rounds=1, factor=5.0)
    _, out, _ = run(before, after, capsys)
    assert "B is faster in 0, slower in 0" in out
    assert "one round" in line_of(out, "uwsgi~none~home")[2] + " " + line_of(out, "uwsgi~none~home")[3]


def test_wrong_answers_and_failed_cases_are_not_compared(tmp_path, capsys):
    before, after = report_folder.make(tmp_path / "a"), report_folder.make(tmp_path / "b")
    _, out, _ = run(before, after, capsys)
    assert "gunicorn~site-middleware~home" not in [line.split()[0] for line in out.splitlines() if line]
    assert "nginx-gunicorn~fragments~session" not in out


def test_cases_of_only_one_run_are_listed(tmp_path, capsys):
    before = report_folder.make(tmp_path / "a")
    after = report_folder.make(tmp_path / "b", workloads=("home",))
    _, out, _ = run(before, after, capsys)
    (line,) = [line for line in out.splitlines() if line.startswith("measured in A only: ")]
    assert "gunicorn~none~session~unlimited~50~sqlite" in line
    assert "measured in B only" not in out


def test_levels_tell_cases_apart_only_where_they_differ(tmp_path, capsys):
    before = report_folder.make(tmp_path / "a", levels=(10, 50))
    after = report_folder.make(tmp_path / "b", levels=(10, 50))
    assert line_of(run(before, after, capsys)[1], "uwsgi~none~home~50")
    single = report_folder.make(tmp_path / "c", levels=(50,))
    assert line_of(run(single, before, capsys)[1], "uwsgi~none~home")


def test_unlike_machines_are_warned_about_one_line_each(tmp_path, capsys):
    before = report_folder.make(tmp_path / "a")
    other = report_folder.environment(
        cpu_model="Example 4000",
        cores=8,
        memory_bytes=32 * 1024**3,
        load_tool=LoadTool("closedloop", "2.0", True),
        packages={"Django": "6.1", "gunicorn": "27.0.1"},
    )
    after = report_folder.make(tmp_path / "b", machine=other)
    with pytest.raises(BenchError) as refusal:
        run(before, after, capsys)
    assert str(refusal.value).startswith(
        f"{before} and {after} come from different environments: CPUs differ: Example 3000"
    )
    assert str(refusal.value).endswith("Django 5.2.19 / 6.1; --unlike compares them anyway")
    _, _, err = run(before, after, capsys, "--unlike")
    assert err.splitlines() == [
        "warning: CPUs differ: Example 3000 (test data) in A, Example 4000 in B",
        "warning: cores differ: 2 in A, 8 in B",
        "warning: memory sizes differ: 8.00 GiB in A, 32.0 GiB in B",
        "warning: load tools differ: wrk 4.1.0 in A, closedloop 2.0 in B",
        "warning: packages differ (A / B): Django 5.2.19 / 6.1",
    ]


def test_the_same_cases_on_another_database_are_compared_with_a_warning(tmp_path, capsys):
    before = report_folder.make(tmp_path / "a")
    after = report_folder.make(tmp_path / "b", database="postgresql", factor=2.0)
    _, out, err = run(before, after, capsys, "--unlike")
    assert err.splitlines() == ["warning: databases differ: sqlite in A, postgresql in B"]
    assert line_of(out, "uwsgi~none~home")[-1] == "faster"


def test_runs_without_a_shared_case_are_refused(tmp_path, capsys):
    before = report_folder.make(tmp_path / "a", workloads=("home",))
    after = report_folder.make(tmp_path / "b", workloads=("session",))
    with pytest.raises(BenchError) as refusal:
        run(before, after, capsys)
    assert str(refusal.value) == (
        f"{before} and {after} share no measured case; compare runs of the same stacks, layers, workloads and levels"
    )


def test_a_folder_that_is_no_run_is_refused(tmp_path, capsys):
    before = report_folder.make(tmp_path / "a")
    with pytest.raises(BenchError) as refusal:
        run(before, tmp_path / "nowhere", capsys)
    assert str(refusal.value) == (
        f"{tmp_path / 'nowhere'}: no such directory; give a folder that `python -m bench run` made"
    )


def test_hostile_names_cannot_break_a_line(tmp_path):
    first = report_folder.make(tmp_path / "a", hostile=True)
    second = report_folder.make(tmp_path / "b")
    found = comparison.compare(read_run(first), read_run(second))
    lines = comparison.render(found, first, second, 80)
    assert all("\n" not in line and "\x1b" not in line for line in (*lines, *found.warnings))
