"""The published benchmarks repeated: their parts are made, gone on with, or left out with a reason."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import msgspec
import pytest

from bench.cli import faults, main, reproduce, run
from bench.errors import BenchError
from bench.measure.records.folder import read_run
from bench.serve.catalog import fit
from reproductions import folder as reproductions
from reproductions import published
from tests.bench.measure.report.faults import fault_folder
from tests.bench.measure.report.faults.fault_folder import outcome
from tests.bench.measure.run.fake_instrument import UNGUARDED, FakeInstrument
from tests.reproductions.tiny import publication


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.delenv("DATABASE_URL", raising=False)
    known = {**published.publications(), "tiny": publication()}
    for module in (published, reproduce, reproductions):
        monkeypatch.setattr(module, "publications", lambda: known)


class FakeFaults:
    """`bench faults`, which writes its folder and makes nothing."""

    def __init__(self, monkeypatch, *statuses: int):
        self.statuses, self.asked = list(statuses), []
        monkeypatch.setattr(reproduce, "begin_faults", self)
        monkeypatch.setattr(faults, "carry_out", self.carry_out)

    def planned(self, request, names):
        self.asked.append((request, names))
        return "planned"

    def resumed(self, directory, project, database):
        self.asked.append(directory)
        return "resumed"

    def carry_out(self, planned: str, to: Path) -> int:
        status = self.statuses.pop(0)
        if planned == "planned":
            made = [outcome("one", "configuration", number) for number in (1, 2)]
            fault_folder.make(to, made, finished=None)
        if status <= 128:
            ends(to / "run.json", "2026-11-22T08:20:00+00:00")
        return status


def ends(path: Path, when: str | None) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "finished_at": when}))


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="reproduce")
    reproduce.add_arguments(parser)
    return parser.parse_args(words)


def asked(tmp_path) -> argparse.Namespace:
    return arguments("tiny", "--quick", *UNGUARDED, "--to", str(tmp_path / "again"))


def refuses(request, names):
    raise BenchError("nothing can be made here: one with layer none: program not installed: one")


@pytest.mark.servers
def test_parts_are_made_once_left_out_with_reasons_and_gone_on_with(tmp_path, monkeypatch, capsys):
    fake, instrument = FakeFaults(monkeypatch, 130, 1), FakeInstrument()
    instrument.misfits["two", "none"] = "program not installed: two"
    assert reproduce.main(asked(tmp_path), instrument) == 130
    again = tmp_path / "again"
    assert f"resume with: python -m bench reproduce --resume {again}" in capsys.readouterr().err
    made = (again / "first" / "trials.jsonl").read_text()
    # A fault that is not as expected is a finding, not a failure.
    assert reproduce.main(arguments("--resume", str(again)), instrument) == 0
    assert (again / "first" / "trials.jsonl").read_text() == made
    trials = read_run(again / "first").trials
    assert {(trial.stack, trial.level, trial.status) for trial in trials} == {("one", 1, "ok"), ("one", 2, "ok")}
    record = reproductions.read(again)
    assert record.finished_at
    assert [part.reason for part in record.parts] == [None, "two with layer none: program not installed: two", None]
    (first, names), second = fake.asked
    assert (first.stacks, names, first.rounds, first.database) == (("one",), ("configuration",), 2, "sqlite")
    # Of the guards those that faults have.
    assert first.guards == ("interference=off",)
    assert second == again / "restart"
    assert capsys.readouterr().out.splitlines()[-1] == str(again / "conclusions.md")
    page = (again / "conclusions.md").read_text("utf-8")
    for line in ("| It restarts. | **holds** |", "| One is faster. | **not measured** | 2 |  | two", "| Gone | 5 |  |"):
        assert line in page
    with pytest.raises(BenchError, match="it is complete; next: python -m bench report"):
        reproduce.main(arguments("--resume", str(again)), instrument)
    assert main.main(["report", str(again), "--to", str(tmp_path / "page.md")]) == 0
    assert (tmp_path / "page.md").read_text("utf-8") == page


@pytest.mark.servers
def test_a_part_that_was_cut_short_is_gone_on_with(tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce.begin_faults, "planned", refuses)
    instrument = FakeInstrument()
    reproduce.main(asked(tmp_path), instrument)
    again = tmp_path / "again"
    assert reproductions.read(again).parts[-1].reason == "one with layer none: program not installed: one"
    lines = (again / "first" / "trials.jsonl").read_text().splitlines(keepends=True)
    (again / "first" / "trials.jsonl").write_text(lines[0])
    for path in (again / "first" / "run.json", again / reproductions.FILE):
        ends(path, None)
    assert reproduce.main(arguments("--resume", str(again)), instrument) == 0
    after = (again / "first" / "trials.jsonl").read_text()
    assert after.startswith(lines[0])
    assert len(after.splitlines()) == len(lines)


@pytest.mark.servers
def test_void_trials_of_a_complete_one_are_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce.begin_faults, "planned", refuses)
    instrument = FakeInstrument()
    reproduce.main(asked(tmp_path), instrument)
    made = tmp_path / "again" / "first" / "trials.jsonl"
    first, *others = map(json.loads, made.read_text().splitlines())
    void = {**first, "status": "voided", "reason": "interference: other processes took 40% of the machine"}
    made.write_text("".join(f"{json.dumps(line)}\n" for line in (void, *others)))
    assert reproduce.main(arguments("--resume", str(tmp_path / "again")), instrument) == 0
    assert [json.loads(line)["trial_id"] for line in made.read_text().splitlines()[1 + len(others) :]] == [
        first["trial_id"]
    ]


@pytest.mark.servers
def test_void_faults_of_a_complete_one_are_made_again(tmp_path, monkeypatch):
    fake, again = FakeFaults(monkeypatch, 0, 0), tmp_path / "again"
    reproduce.main(asked(tmp_path), FakeInstrument())
    void = outcome("one", "configuration", 2, status="voided", reason="interference: other processes took 40%")
    with (again / "restart" / "faults.jsonl").open("ab") as file:
        file.write(msgspec.json.encode(void) + b"\n")
    assert reproduce.main(arguments("--resume", str(again)), FakeInstrument()) == 0
    assert fake.asked[1:] == [again / "restart"]


@pytest.mark.servers
def test_what_stops_a_run_stops_all_and_says_how_to_go_on(tmp_path, monkeypatch):
    real = run.carry_out

    def stopped(*planned, **how):
        real(*planned, **how)
        raise BenchError("stopped: the disk is full; fix it and resume with: python -m bench run --resume X")

    monkeypatch.setattr(run, "carry_out", stopped)
    with pytest.raises(BenchError, match="or all of it: python -m bench reproduce --resume"):
        reproduce.main(asked(tmp_path), FakeInstrument())
    assert reproductions.read(tmp_path / "again").finished_at is None


def test_nothing_that_can_run_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce.begin_faults, "planned", refuses)
    instrument = FakeInstrument()
    instrument.misfits |= {("one", "none"): "not installed: one", ("two", "none"): "not installed: two"}
    with pytest.raises(BenchError, match="nothing of tiny can run here: one with layer none: not installed: one"):
        reproduce.main(asked(tmp_path), instrument)
    assert reproductions.read(tmp_path / "again").finished_at is None


def test_wrong_arguments_are_refused_before_anything_begins(tmp_path, capsys):
    with pytest.raises(BenchError, match="--guard litle=1: write it as"):
        reproduce.main(arguments("tiny", "--guard", "litle=1", "--to", str(tmp_path / "again")), FakeInstrument())
    assert not (tmp_path / "again").exists()
    with pytest.raises(BenchError, match="name a benchmark: "):
        reproduce.main(arguments(), FakeInstrument())
    with pytest.raises(SystemExit):
        main.parser().parse_args(["reproduce", "cachin"])
    (tmp_path / "file").touch()
    with pytest.raises(BenchError, match="not empty; name a new or empty directory"):
        reproduce.main(arguments("tiny", "--to", str(tmp_path)), FakeInstrument())
    with pytest.raises(BenchError, match=r"--resume takes its plan from .*; leave out --quick"):
        reproduce.main(arguments("--quick", "--resume", str(tmp_path)), FakeInstrument())


def test_a_missing_published_database_is_replaced_with_a_note(monkeypatch):
    monkeypatch.setattr(fit, "missing_programs", lambda service: ["initdb"])
    layers, flup = published.publications()["caching"].parts[0], published.publications()["cherokee-report"].parts[3]
    note = "postgresql is not installed (initdb): sqlite replaces it"
    assert reproduce._database(layers) == ("sqlite", (note,))
    with pytest.raises(BenchError, match="postgresql is not installed"):
        reproduce._database(flup)
