"""Folders of invented figures, one plain and one with hostile text, shared by the tests of a module."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.measure.records import records
from tests.bench.measure.report import report_folder
from tests.bench.measure.report.pages import shown


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    return report_folder.make(tmp_path_factory.mktemp("plain") / "run")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    fallback = report_folder.environment(load_tool=records.LoadTool("closedloop", "2.0", True))
    return report_folder.make(
        tmp_path_factory.mktemp("hostile") / "run", hostile=True, levels=(10, 50), machine=fallback
    )


@pytest.fixture(scope="module", params=["plain", "hostile"])
def written(request) -> str:
    return shown(request.getfixturevalue(request.param))


@pytest.fixture
def capacity_run(tmp_path_factory):
    """Makes runs of one stack with two layers; see report_folder.capacity."""
    held = {"none": (95, 100, 106), "page-cache": (500, 530, 530)}
    return lambda *how, **more: report_folder.capacity(tmp_path_factory.mktemp("capacity") / "run", held, *how, **more)
