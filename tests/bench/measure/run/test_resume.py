"""Stopping a run loses at most the trial under way, and --resume makes the rest."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from bench import paths
from bench.cli import run
from bench.errors import BenchError
from bench.measure.records.folder import Folder, read_run
from bench.measure.report import facts
from bench.measure.run import schedules
from tests.bench.measure.run.fake_sites import QUICK, FakeSites, arguments, change
from tests.waiting import until


@pytest.mark.servers
def test_a_run_goes_on_where_it_stopped_even_after_a_torn_line(go, sites, unfinished):
    folder = unfinished("--stack", "two")
    lines = (folder / "trials.jsonl").read_text().splitlines(keepends=True)
    (folder / "trials.jsonl").write_text(lines[0] + lines[1][:40])
    change(folder / "environment.json", kernel="Linux 1.0")
    sites.log.clear()
    with pytest.raises(BenchError, match="it measures another database, sqlite; leave out --database"):
        go("--resume", str(folder), "--database", "sqlite:////tmp/other.sqlite3")

    status, recorded = go("--resume", str(folder))
    assert status == 0
    assert len(recorded.trials) == len({trial.trial_id for trial in recorded.trials}) == 2
    assert (folder / "trials.jsonl").read_text().startswith(lines[0])
    assert recorded.info.finished_at
    assert len([words for words in sites.log if words.startswith("up")]) == 1
    # Verified deployments are not verified again.
    assert not [words for words in sites.log if words.startswith("verify")]
    assert recorded.info.notes[-1] == "resumed after a stop; since it began these have changed: kernel"


@pytest.mark.servers
def test_a_trial_torn_after_the_run_ended_is_named_and_made_again(go, tmp_path):
    go("--stack", "one", "--stack", "two")
    folder = tmp_path / "run"
    path = folder / "trials.jsonl"
    path.write_text(path.read_text()[:-40])
    assert any("1 trial left" in note and f"--resume {folder}" in note for note in facts.notes(read_run(folder)))
    status, recorded = go("--resume", str(folder))
    assert (status, recorded.missing) == (0, 0)
    assert [trial.status for trial in recorded.trials] == ["ok", "ok"]


@pytest.mark.servers
def test_after_its_rounds_a_run_shows_the_latency_at_a_rate_and_a_discarded_trial_of_it_is_made_again(
    go, latency, monkeypatch, tmp_path
):
    latency()
    status, recorded = go("--stack", "one", "--rounds", "2")
    rates = [trial.throughput for trial in recorded.trials]
    (trial,) = recorded.latency
    assert (status, trial.status, trial.tool, recorded.missing) == (0, "ok", "openloop", 0)
    assert trial.rate_requested == round(sum(rates) / 2 / 2)
    assert trial.figures.latency_p50_ms and trial.figures.latency_p99_ms and not trial.figures.requests_dropped
    monkeypatch.setattr(schedules, "LATENCY_REQUESTS", 100)
    path = tmp_path / "run" / "trials.jsonl"
    *closed, opened = map(json.loads, path.read_text().splitlines())
    discard = {"status": "discarded", "reason": "interference: other processes took 40% of the machine"}
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (*closed, opened | discard)))
    assert any("1 trial discarded (interference)" in note for note in facts.notes(read_run(tmp_path / "run")))
    status, recorded = go("--resume", str(tmp_path / "run"))
    assert (status, [trial.status for trial in recorded.latency]) == (0, ["discarded", "ok"])
    with pytest.raises(BenchError, match="the run is complete"):
        go("--resume", str(tmp_path / "run"))


def start(tmp_path, *words):
    """A run on fake sites as a process, and a file with its actions."""
    log = tmp_path / "sites.log"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.measure.run.fake_sites", *words],
        cwd=paths.KIT,
        env={**os.environ, "FAKE_SITES_LOG": str(log)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    return process, log


def lines_of(path):
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.servers
@pytest.mark.parametrize("number, status", [(signal.SIGTERM, 143), (signal.SIGKILL, -9)], ids=["term", "kill"])
def test_stopped_in_the_middle_it_loses_the_trial_under_way_and_no_more(tmp_path, number, status, sites):
    folder = tmp_path / "run"
    words = ["--stack", "one", "--stack", "two", *QUICK, "--duration", "2", "--output", str(folder)]
    process, log = start(tmp_path, *words)
    try:
        until(lambda: len(lines_of(folder / "trials.jsonl")) == 1, "one trial")
        # The second deployment is up and its trial under way.
        until(lambda: len(list(folder.glob("raw/*/load.out"))) == 2, "the second trial is under way")
        process.send_signal(number)
        _, stderr = process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == status
    stopped = read_run(folder)
    assert stopped.info.finished_at is None
    assert [trial.status for trial in stopped.trials] == ["ok"]
    if number != signal.SIGKILL:
        name = signal.Signals(number).name
        # On a busy machine, an earlier line names the busy programs.
        *_, last = stderr.splitlines()
        assert last == f"benchapp run: {name}; resume with: python -m bench run --resume {folder}"
        done = lines_of(log)
        assert len([line for line in done if line.startswith("up")]) == 2
        assert len([line for line in done if line.startswith("down")]) == 2

    # The second trial's load on the tiny site does not matter here.
    run.main(arguments(["--resume", str(folder)]), sites.bed)
    resumed = read_run(folder)
    assert resumed.info.finished_at is not None
    assert resumed.trials[0] == stopped.trials[0]
    assert len(resumed.trials) == 2
    assert len({trial.trial_id for trial in resumed.trials}) == 2


# ------------------------------------------------------------------------------------- refusals


def resume(folder, *words):
    return run.main(arguments(["--resume", str(folder), *words]), FakeSites().bed)


@pytest.mark.servers
def test_a_run_under_way_is_not_touched(unfinished):
    folder = unfinished()
    with Folder(folder).locked(), pytest.raises(BenchError, match="a run is under way in it") as error:
        resume(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("words", "name"), [(["--stack", "one"], "STACK"), (["--margin", "0"], "--margin")])
def test_resume_takes_its_plan_from_the_folder(tmp_path, words, name):
    with pytest.raises(BenchError, match=f"--resume takes its plan from {tmp_path}; leave out {name}"):
        resume(tmp_path, *words)


@pytest.mark.servers
def test_resume_needs_the_url_that_is_not_recorded(unfinished):
    folder = unfinished("--database", "postgresql://me:secret@db/site")
    assert "secret" not in "".join(path.read_text() for path in folder.glob("*.json*"))
    with pytest.raises(BenchError, match="the URL of its database is not stored; give --database"):
        resume(folder)
    with pytest.raises(BenchError, match="it measures another database, postgresql; give its URL"):
        resume(folder, "--database", "sqlite")
    with pytest.raises(BenchError, match="it measures another database, postgresql; give its URL"):
        resume(folder, "--database", "postgresql")
    assert resume(folder, "--database", "postgresql://me:secret@db/site") == 0


@pytest.mark.servers
def test_a_run_does_not_go_on_with_other_rows(unfinished, monkeypatch):
    folder = unfinished("--rounds", "2", trials=1)
    for rows in ((5000, 7), (1234, 8)):
        monkeypatch.setattr(FakeSites, "rows", lambda *_, rows=rows: rows)
        with pytest.raises(BenchError, match="this is another database: "):
            resume(folder)
    # A killed check leaves a few behind.
    monkeypatch.setattr(FakeSites, "rows", lambda *_: (1240, 7))
    assert (resume(folder), len(read_run(folder).trials)) == (0, 2)
