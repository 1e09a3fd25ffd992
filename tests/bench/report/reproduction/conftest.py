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
def folder(tmp_path, tiny) -> Path:
    made = tmp_path / "again"
    report_folder.make(made / "first", workloads=("home",), levels=(10, 50), rounds=5)
    reproduction.write(made, record())
    return made
