"""Every kind of run on invented sites: order and results of trials, and output."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from bench import paths
from bench.cli import run, tune
from bench.measure.records.folder import read_run
from bench.measure.run import local, plan
from tests.bench.measure.records.run_data import TRIAL, at_rate, changed, failed
from tests.bench.measure.run.fake_sites import UNGUARDED, FakeSites, arguments, change

GOLDEN = paths.KIT / "tests" / "golden" / "runs.json"
# Write what is made into the golden, for a person to look at the difference.
UPDATE = "BENCH_UPDATE_GOLDEN" in os.environ
SHORT = ["--duration", "1", *UNGUARDED]
RATES = {"one": 1000.0, "two": 980.0, "three": 600.0, "four": 590.0, "five": 300.0, "six": 990.0}
INTERFERED = "interference: other processes took 40% of the machine"
# Parts of the output that depend on the machine.
HERE = re.compile(r"; time left.*|, in about .*| in \d+\.\d s|, load by \w+")


def stacks(*names: str) -> list[str]:
    return [word for name in names for word in ("--stack", name)]


RUNS = {
    "rounds": [*stacks("one", "two", "bad", "tired"), "--workload", "home", "--workload", "login", "--rounds", "3"],
    "levels": [*stacks("one", "two", "five"), "--connections", "8", "--connections", "16", "--rounds", "2"],
    "decided": [*stacks(*RATES, "faulty"), "--workload", "home", "--workload", "login", "--until-decided"],
    "few rounds": [*stacks("one", "two", "six"), "--until-decided", "--rounds", "3", "--margin", "0"],
    "rate": [*stacks("one", "two"), "--rate", "20", "--rate", "40", "--rounds", "2"],
    "capacity": [*stacks("one", "five", "bad"), "--capacity", "p95=200ms", "--rounds", "3"],
    "tune": ["gunicorn", "--capacity", "p95=200ms"],
}


class Randrange:
    """The seed of every run in a test."""

    def randrange(self, _: int) -> int:
        return 7


def chance(*of: object) -> float:
    """A number from 0 to 1, always the same for the same words."""
    return int(hashlib.sha256(repr(of).encode()).hexdigest()[:8], 16) / 16**8


def invented(item, addresses, project, loading, folder):
    """A trial without load: faster and slower sites, noise, interference, overload and failures."""
    attempts = [trial for trial in read_run(folder.directory).trials if trial.trial_id == item.key]
    attempts += [trial for trial in read_run(folder.directory).latency if trial.trial_id == item.key]
    names = ("case_id", "stack", "layer", "workload", "size", "database")
    identity = {name: getattr(item.case, name) for name in names}
    stack, layer = item.case.stack, item.case.layer
    fast = RATES.get(stack.partition("@")[0], 400.0) * (0.5 if layer == "files" else 1)
    if loading.load.mode == "open":
        fast *= 0.5 if "processes=1," in stack else 1
        late = 900.0 if item.level > fast else 20.0
        result = at_rate(item.rate or item.level, late, item.round, replace(TRIAL, **identity))
    else:
        rate = fast * (1 + 0.03 * chance("noise", item.key))
        result = changed(TRIAL, **identity, level_connections=item.level, round=item.round, requests_per_second=rate)
    result = replace(result, trial_id=item.key)
    if stack == "faulty" or (result.mode == "open" and item.level > 2 * fast):
        return failed(result)
    # One trial in twelve is disturbed once or more often.
    if chance("disturbed", item.key) < 0.08 and len(attempts) < 1 + round(chance("often", item.key)):
        return replace(result, status="discarded", reason=INTERFERED)
    return result


@pytest.fixture
def sites(monkeypatch) -> FakeSites:
    monkeypatch.setattr(local, "measure", invented)
    monkeypatch.setattr(plan.random, "SystemRandom", Randrange)
    fake = FakeSites()
    fake.wrong.add("bad")
    fake.refuses.add("tired")
    return fake


def go(kind: str, words: list[str], sites: FakeSites) -> int:
    command = tune if kind == "tune" else run
    return command.main(arguments(words, command), sites.bed)


def golden_of(kind: str, status: int, folder: Path, output: str) -> dict[str, object]:
    """The golden of a run."""
    recorded = read_run(folder)
    every = [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]
    return {
        "status": status,
        "trials": [f"{trial['trial_id']} {trial['status']}" for trial in every],
        "dropped": [f"{item.case_id} {item.level} {item.round} {item.reason}" for item in recorded.info.dropped],
        "ended_by": recorded.info.ended_by,
        "cases": [case.case_id for case in recorded.info.cases],
        "output": lines_of(output, folder),
    }


def lines_of(output: str, folder: Path) -> list[str]:
    """The output, without parts that depend on the machine."""
    lines = output.replace(str(folder), "FOLDER").splitlines()
    return [HERE.sub("", line) for line in lines if not line.startswith(("note: ", "Next: "))]


def complete_run(kind: str, folder: Path, sites: FakeSites, capsys) -> dict[str, object]:
    words = [*RUNS[kind], *SHORT, "--output", str(folder)]
    words += [] if "--workload" in words else ["--workload", "home"]
    if kind != "tune":
        words += ["--layer", "none", "--layer", "files", "--keep-going"]
    capsys.readouterr()
    status = go(kind, words, sites)
    return golden_of(kind, status, folder, capsys.readouterr().out)


def latest(golden: dict[str, object]) -> dict[str, str]:
    """Trial -> status of its last attempt."""
    return dict(line.split(" ") for line in golden["trials"])


@pytest.mark.servers
@pytest.mark.parametrize("kind", RUNS)
def test_a_run_makes_the_same_trials_in_the_same_order(kind, tmp_path, sites, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    result = complete_run(kind, tmp_path / "run", sites, capsys)
    if UPDATE:
        GOLDEN.write_text(json.dumps(json.loads(GOLDEN.read_text()) | {kind: result}, indent=1) + "\n")
    assert result == json.loads(GOLDEN.read_text())[kind]


@pytest.mark.servers
@pytest.mark.parametrize("kind", ["decided", "capacity", "tune"])
def test_a_run_that_was_stopped_ends_as_the_whole_one(kind, tmp_path, sites, capsys):
    golden = json.loads(GOLDEN.read_text())[kind]
    uninterrupted = complete_run(kind, tmp_path / "whole", sites, capsys)
    lines = (tmp_path / "whole" / "trials.jsonl").read_text().splitlines(keepends=True)
    count = len(lines) // 2
    folder = tmp_path / "stopped"
    folder.mkdir()
    for name in ("run.json", "environment.json", "workloads.json", "verify.jsonl"):
        (folder / name).write_bytes((tmp_path / "whole" / name).read_bytes())
    (folder / "raw").mkdir()
    (folder / "trials.jsonl").write_text("".join(lines[:count]))
    change(folder / "run.json", finished_at=None, dropped=(), ended_by=None)
    resume = ["--resume", str(folder)] + (["--keep-going"] if kind != "tune" else [])
    assert go(kind, resume, sites) == uninterrupted["status"]
    again = golden_of(kind, 0, folder, "")
    trusted = {name: status for name, status in latest(again).items() if latest(golden)[name] != "discarded"}
    assert trusted == {name: status for name, status in latest(golden).items() if status != "discarded"}
    assert (again["dropped"], again["ended_by"]) == (golden["dropped"], golden["ended_by"])
