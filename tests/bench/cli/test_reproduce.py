"""The published benchmarks repeated: their data leads to real runs, the runs to ratios, and the ratios to verdicts."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

import pytest

from bench.catalog import catalog, fit
from bench.cli import faults, main, reproduce, run
from bench.errors import BenchError
from bench.faults import kinds
from bench.measure import guards
from bench.measure.ledger import MAX_DISTURBED
from bench.project import workload
from bench.report.reproduction import side_by_side
from bench.results import reproduction
from bench.results.folder import read_run
from tests.bench.measure.fake_instrument import FakeInstrument
from tests.bench.report.faults import fault_folder
from tests.bench.report.faults.fault_folder import outcome
from tests.bench.report.reproduction.tiny import TINY, record
from tests.cases import kit

NAMES = list(reproduction.benchmarks())


@pytest.fixture(autouse=True)
def no_database_of_the_caller(monkeypatch):
    monkeypatch.delenv("DATABASE_URL", raising=False)


@pytest.mark.parametrize(
    ("benchmark", "part"),
    [(name, part["name"]) for name in NAMES for part in reproduction.benchmarks()[name]["parts"]],
)
@pytest.mark.parametrize("quick", [False, True], ids=["published", "quick"])
def test_every_part_is_a_run_of_what_exists(benchmark, part, quick):
    words = reproduce.words_of(benchmark, part, quick)
    asked = main.parser().parse_args(["run", *words])
    for stack in asked.stack:
        assert catalog.read().stack(stack)
    for layer in asked.layer:
        assert catalog.read().joined_layers(layer)
    for name in asked.workload:
        assert workload.workload(kit(), name)
    for size in asked.size or []:
        assert size == "unlimited" or catalog.read().size(size)


FAULTS = [(name, part["name"]) for name in NAMES for part in reproduction.benchmarks()[name].get("faults", [])]


@pytest.mark.parametrize(("benchmark", "part"), FAULTS)
def test_every_part_of_faults_is_of_what_exists(benchmark, part):
    quick, whole = (
        main.parser().parse_args(["faults", *reproduce.fault_words_of(benchmark, part, short)])
        for short in (True, False)
    )
    assert whole.stacks, "without names the historic ones would be missing"
    for stack in whole.stacks:
        assert catalog.read().stack(stack)
    assert kinds.named(tuple(whole.fault))
    assert 1 < quick.rounds < whole.rounds


class FakeFaults:
    """`bench faults`, which writes its folder and makes nothing."""

    def __init__(self, *statuses: int):
        self.statuses, self.asked = list(statuses), []

    def main(self, args: argparse.Namespace) -> int:
        self.asked.append(args)
        status = self.statuses.pop(0)
        folder = args.resume or args.to
        if not args.resume:
            made = [outcome("one", "configuration", number) for number in (1, 2)]
            fault_folder.make(folder, made, finished=None if status > 128 else "2026-11-22T08:20:00+00:00")
        return status


@pytest.mark.servers
def test_faults_are_made_once_and_gone_on_with(tmp_path, tiny_faults, monkeypatch, capsys):
    fake, instrument = FakeFaults(130, 1), FakeInstrument()
    monkeypatch.setattr(faults, "main", fake.main)
    instrument.misfits["two", "none"] = "gone"
    assert reproduce.main(asked(tmp_path), instrument) == 130
    folder = tmp_path / "again"
    # A fault that is not as expected is a finding, not a failure.
    assert reproduce.main(arguments("--resume", str(folder)), instrument) == 0
    first, second = fake.asked
    assert (first.stacks, first.fault, first.rounds, first.database) == (["one"], ["configuration"], 2, "sqlite")
    # Of the guards those that faults have.
    assert first.guard == ["interference=off"]
    assert second.resume == folder / "restart"
    assert "It restarts without losing requests." in (folder / "report.html").read_text("utf-8")
    assert (folder / "restart" / "report.html").exists()


@pytest.mark.servers
def test_faults_that_cannot_be_made_are_left_out(tmp_path, tiny_faults, monkeypatch):
    def refused(args):
        raise BenchError("nothing can be made here: one with layer none: program not installed: one")

    monkeypatch.setattr(faults, "main", refused)
    instrument = FakeInstrument()
    instrument.misfits["two", "none"] = "gone"
    assert reproduce.main(asked(tmp_path), instrument) == 0
    assert reproduction.read(tmp_path / "again").parts[-1].reason == "one with layer none: program not installed: one"


def test_quick_is_shorter():
    for name in NAMES:
        for part in reproduction.benchmarks()[name]["parts"]:
            whole, quick = (
                main.parser().parse_args(["run", *reproduce.words_of(name, part["name"], short)])
                for short in (False, True)
            )
            assert quick.duration * quick.rounds < whole.duration * whole.rounds
            assert (quick.stack, quick.level) == (whole.stack, whole.level)


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="reproduce")
    reproduce.add_arguments(parser)
    return parser.parse_args(words)


def asked(tmp_path, *words: str) -> argparse.Namespace:
    # On a machine that runs other tests too, guards would void what these are not about.
    unguarded = [word for name in guards.BOUNDS for word in ("--guard", f"{name}=off")]
    return arguments("tiny", "--quick", *unguarded, "--to", str(tmp_path / "again"), *words)


@pytest.mark.servers
def test_runs_are_made_reported_and_left_out_with_reasons(tmp_path, tiny, capsys):
    instrument = FakeInstrument()
    instrument.misfits["two", "none"] = "program not installed: two"
    assert reproduce.main(asked(tmp_path), instrument) == 0
    folder = tmp_path / "again"
    made = reproduction.read(folder)
    assert made.finished_at
    assert [part.reason for part in made.parts] == [None, "two with layer none: program not installed: two"]
    trials = read_run(folder / "first").trials
    assert sorted((trial.stack, trial.level, trial.status) for trial in trials) == [("one", 1, "ok"), ("one", 2, "ok")]
    assert capsys.readouterr().out.splitlines()[-1] == str(folder / "report.html")
    with pytest.raises(BenchError, match="it is complete; next: python -m bench report"):
        reproduce.main(arguments("--resume", str(folder)), instrument)


@pytest.mark.servers
def test_a_reproduction_goes_on_where_it_stopped(tmp_path, tiny, monkeypatch, capsys):
    instrument, real = FakeInstrument(), run.main
    monkeypatch.setattr(
        run, "main", lambda args, instrument=None: 130 if args.stack == ["two"] else real(args, instrument)
    )
    assert reproduce.main(asked(tmp_path), instrument) == 130
    folder = tmp_path / "again"
    assert capsys.readouterr().err.endswith(f"resume with: python -m bench reproduce --resume {folder}\n")
    assert reproduction.read(folder).finished_at is None
    first = (folder / "first" / "trials.jsonl").read_text()
    monkeypatch.setattr(run, "main", real)
    assert reproduce.main(arguments("--resume", str(folder)), instrument) == 0
    assert (folder / "first" / "trials.jsonl").read_text() == first
    assert [trial.stack for trial in read_run(folder / "second").trials] == ["two"]
    assert [line for line in instrument.log if line.startswith("up")] == ["up one none", "up two none"]


@pytest.mark.servers
def test_a_part_that_was_cut_short_is_gone_on_with(tmp_path, tiny):
    instrument = FakeInstrument()
    instrument.misfits["two", "none"] = "gone"
    reproduce.main(asked(tmp_path), instrument)
    folder = tmp_path / "again"
    lines = (folder / "first" / "trials.jsonl").read_text().splitlines(keepends=True)
    (folder / "first" / "trials.jsonl").write_text(lines[0])
    for path in (folder / "first" / "run.json", folder / reproduction.FILE):
        path.write_text(json.dumps({**json.loads(path.read_text()), "finished_at": None}))
    assert reproduce.main(arguments("--resume", str(folder)), instrument) == 0
    assert len((folder / "first" / "trials.jsonl").read_text().splitlines()) == 2
    assert (folder / "first" / "trials.jsonl").read_text().startswith(lines[0])


@pytest.mark.servers
def test_a_fault_that_stops_a_run_stops_all_and_says_how_to_go_on(tmp_path, tiny, monkeypatch):
    real = run.main

    def stopped(args, instrument=None):
        real(args, instrument)
        raise BenchError("stopped: the disk is full; fix it and resume with: python -m bench run --resume X")

    monkeypatch.setattr(run, "main", stopped)
    with pytest.raises(BenchError, match="or all of it: python -m bench reproduce --resume"):
        reproduce.main(asked(tmp_path), FakeInstrument())
    assert reproduction.read(tmp_path / "again").finished_at is None


def test_nothing_that_can_run_is_one_line_and_leaves_no_folder(tmp_path, tiny):
    instrument = FakeInstrument()
    instrument.misfits |= {("one", "none"): "not installed: one", ("two", "none"): "not installed: two"}
    with pytest.raises(BenchError, match="nothing of tiny can run here: one with layer none: not installed: one"):
        reproduce.main(asked(tmp_path), instrument)
    assert not (tmp_path / "again").exists()


def test_a_wrong_guard_is_refused_before_anything_begins(tmp_path, tiny, capsys):
    with pytest.raises(BenchError, match="--guard litle=1: write it as"):
        reproduce.main(arguments("tiny", "--guard", "litle=1", "--to", str(tmp_path / "again")), FakeInstrument())
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "again").exists()


def test_a_folder_in_use_is_refused(folder):
    with pytest.raises(BenchError, match="already holds a reproduction; resume it with --resume"):
        reproduce.main(arguments("tiny", "--to", str(folder)), FakeInstrument())
    with pytest.raises(BenchError, match="not an empty directory; give --to a new one"):
        reproduce.main(arguments("tiny", "--to", str(folder / "first")), FakeInstrument())


@pytest.mark.parametrize("words", [["tiny"], ["--to", "x"], ["--quick"], ["--guard", "drift=off"]])
def test_resume_takes_everything_from_the_folder(folder, words):
    with pytest.raises(BenchError, match=r"--resume takes everything from .*; leave out"):
        reproduce.main(arguments(*words, "--resume", str(folder)), FakeInstrument())


def test_a_benchmark_must_be_named():
    with pytest.raises(BenchError, match="name a benchmark: deployment-techniques, cherokee-report, caching"):
        reproduce.main(arguments(), FakeInstrument())
    with pytest.raises(SystemExit):
        main.parser().parse_args(["reproduce", "cachin"])


def test_a_missing_published_database_is_replaced_with_a_note(monkeypatch):
    monkeypatch.setattr(fit, "missing_programs", lambda service: ["initdb"])
    asked_for = replace(record(), benchmark="caching")
    assert reproduce._database(asked_for, "layers") == (
        "sqlite",
        ("postgresql is not installed (initdb): sqlite replaces it",),
    )


@pytest.mark.servers
def test_rounds_are_added_only_to_cases_of_open_claims_and_not_for_ever(tmp_path, tiny, monkeypatch, capsys):
    sides = {"left": {"stack": "one", "level": 2}, "right": {"stack": "two"}}
    parts = [{**TINY["parts"][0], "stacks": ["one", "two", "three"]}]
    never = {
        **TINY,
        "parts": parts,
        "claims": [{"claim": "They are equal.", **sides, "at_least": 1, "at_most": 1.0001}],
    }
    known = {**reproduction.benchmarks(), "tiny": never}
    monkeypatch.setattr(reproduction, "benchmarks", lambda: known)
    assert reproduce.main(asked(tmp_path), FakeInstrument()) == 0
    info = read_run(tmp_path / "again" / "first").info
    assert {(item.case_id.partition("~")[0], item.level) for item in info.added} == {("one", 2), ("two", 2)}
    made = [trial for trial in read_run(tmp_path / "again" / "first").trials if trial.round > 1]
    assert len(made) == len(info.added)
    assert 1 < info.rounds <= reproduction.LOOKS
    assert info.finished_at
    assert "part first: a conclusion is open; 1 more round of 2 cases" in capsys.readouterr().out


@pytest.mark.servers
def test_other_programs_neither_end_it_nor_get_a_figure_in(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr("bench.measure.trial.Interference.share", lambda *_: 0.9)
    instrument = FakeInstrument()
    instrument.misfits["two", "none"] = "gone"
    assert reproduce.main(asked(tmp_path, "--guard", "interference=0.25"), instrument) == 1
    folder = tmp_path / "again"
    trials = read_run(folder / "first").trials
    assert {trial.status for trial in trials} == {"voided"} and len(trials) >= MAX_DISTURBED
    assert reproduction.read(folder).finished_at
    found = side_by_side.read(folder)
    assert not any(row.ranked for report in found.reports for row in report.rows)
    assert {verdict.verdict for verdict in found.verdicts} == {"not measured"}
