"""Runs on fake sites."""

from __future__ import annotations

import pytest

from bench.cli import run
from bench.measure.records.folder import read_run
from bench.measure.run import schedules
from tests.bench.measure.run.fake_sites import QUICK, FakeSites, arguments, change


@pytest.fixture(autouse=True)
def no_database_of_the_caller(monkeypatch):
    monkeypatch.delenv("DATABASE_URL", raising=False)


@pytest.fixture(autouse=True)
def latency(monkeypatch):
    """Measurements in an open loop after the rounds: none, unless a test requests them."""
    original = schedules.latency
    monkeypatch.setattr(schedules, "latency", lambda *_: [])
    return lambda: monkeypatch.setattr(schedules, "latency", original)


@pytest.fixture
def sites():
    return FakeSites()


@pytest.fixture
def go(tmp_path, sites):
    """Run with these arguments on the fake sites; returns the exit status and the records."""

    def went(*words, to="run"):
        where = [] if "--resume" in words else ["--output", str(tmp_path / to)]
        status = run.main(arguments([*QUICK, *where, *words] if where else list(words)), sites.bed)
        return status, read_run(tmp_path / to)

    return went


@pytest.fixture
def unfinished(tmp_path, go):
    """The folder of an unfinished run of these arguments, with so many of its trials."""

    def make(*words, trials=None):
        go("--stack", "one", *words)
        folder = tmp_path / "run"
        change(folder / "run.json", finished_at=None)
        lines = (folder / "trials.jsonl").read_text().splitlines(keepends=True)
        (folder / "trials.jsonl").write_text("".join(lines[:trials]))
        return folder

    return make
