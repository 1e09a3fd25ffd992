"""A reproduction of invented figures, read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.results import reproduction
from tests.bench.report import report_folder
from tests.bench.report.reproduction.tiny import TINY, record


@pytest.fixture
def tiny(monkeypatch):
    real = reproduction.benchmarks()
    monkeypatch.setattr(reproduction, "benchmarks", lambda: {**real, "tiny": TINY})


@pytest.fixture
def tiny_faults(tiny, monkeypatch):
    """The same with a part that makes faults."""
    part = {"name": "restart", "stacks": ["one"], "faults": ["configuration"], "rounds": 5, "quick": {"rounds": 2}}
    claim = {"claim": "It restarts without losing requests.", "loses": "configuration", "left": {"stack": "one"}}
    benchmark = {**TINY, "faults": [part], "claims": [*TINY["claims"], claim]}
    known = {**reproduction.benchmarks(), "tiny": benchmark}
    monkeypatch.setattr(reproduction, "benchmarks", lambda: known)


@pytest.fixture
def folder(tmp_path, tiny) -> Path:
    made = tmp_path / "again"
    report_folder.make(made / "first", workloads=("home",), levels=(10, 50), rounds=5)
    reproduction.write(made, record())
    return made
