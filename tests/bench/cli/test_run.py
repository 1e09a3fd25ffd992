"""The arguments of `run`."""

from __future__ import annotations

import re

from bench.cli import request_args, run
from tests.bench.measure.run.fake_sites import QUICK, FakeSites, arguments


def test_a_run_until_decided_has_rounds_and_a_budget_at_most(capsys):
    words = [*QUICK, "--rounds", "7", "--stack", "one", "--until-decided", "--max-time", "3m", "--dry-run"]
    assert run.main(arguments(words), FakeSites().bed) == 0
    lines = capsys.readouterr().out.splitlines()
    # One deployment of 4 s, one verification of 15 s, one trial of 1.2 s and its overhead.
    assert re.fullmatch(r"1 case, 1 trial in the next round, load by \w+, in about 22 s", lines[1])
    assert lines[2] == "each case: 16 connections, 1 s a round, until it cannot be the best any more"
    assert lines[3] == "rounds: until one case leads or the rest tie, at most 7 or 3 min"


def test_a_password_in_the_command_line_is_not_recorded():
    words = ["--database", "postgresql://me:s3cr3t@db/site", "--output", "/tmp/a@b"]
    assert [request_args.without_password(word) for word in words] == [
        "--database",
        "postgresql://...@db/site",
        "--output",
        "/tmp/a@b",
    ]


def test_the_defaults_are_those_of_the_contract():
    args = arguments([])
    names = "stack layer workload connections rate rounds duration size tool output env set python margin guard"
    others = "capacity until_decided max_time database project config resume inventory keep_going dry_run all"
    of_commits = "ref same_responses fail_if"
    assert vars(args).keys() == {*names.split(), *others.split(), *of_commits.split()}
    assert [name for name, value in vars(args).items() if value not in (None, (), {}, False)] == []


def test_a_dry_run_prints_the_plan_and_neither_starts_nor_writes_anything(tmp_path, capsys):
    sites = FakeSites()
    sites.misfits["two", "none"] = "it has no file"
    words = [*QUICK, "--rounds", "3", "--stack", "one", "--stack", "two", "--dry-run"]
    words += ["--output", str(tmp_path / "run")]
    assert run.main(arguments(words), sites.bed) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "case: one, layer none, home"
    # Three deployments of 4 s, one verification of 15 s, three trials of 1.2 s and their overhead.
    assert re.fullmatch(r"1 case, 3 trials, load by \w+, in about 35 s", lines[1])
    assert "skipped: two with layer none: it has no file" in lines
    assert (sites.log, list(tmp_path.iterdir())) == ([], [])


def test_each_stack_is_a_case_of_each_python(capsys, monkeypatch):
    monkeypatch.setattr(run, "choose", tuple)
    monkeypatch.setattr(run.prepare.pythons, "described", lambda version: f"CPython {version}.9")
    words = [*QUICK, "--stack", "one", "--python", "3.12", "--python", "3.13", "--dry-run"]
    assert run.main(arguments(words), FakeSites().bed) == 0
    cases = [line for line in capsys.readouterr().out.splitlines() if line.startswith("case: ")]
    assert cases == [f"case: one@python={version}, layer none, home" for version in ("3.12", "3.13")]
