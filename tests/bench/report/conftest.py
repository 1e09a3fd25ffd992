"""Folders of invented figures, one plain and one with hostile text, shared by the tests of a module."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.records import records
from bench.records.folder import ADDRESSES_FILE, Folder, read_info, write_json
from tests.bench.records.run_data import at_rate
from tests.bench.report import report_folder
from tests.bench.report.pages import shown


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


# Layer -> what it holds in each of three rounds.
HELD = {"none": (95, 100, 106), "site-middleware": (500, 530, 530)}


@pytest.fixture
def capacity_run(tmp_path_factory):
    """Makes runs of one stack with two layers, whose staircases are cut down to the rates around their ends."""

    def made(change=lambda trial: trial, sizes: tuple[str, ...] = ("unlimited",)) -> Path:
        folder = report_folder.make(
            tmp_path_factory.mktemp("capacity") / "run", workloads=("home",), change=lambda trial: None
        )
        info = read_info(folder)
        cases = [case for case in info.cases if case.stack == "gunicorn" and case.layer in HELD]
        cases = [
            replace(case, size=size, case_id=case.case_id.replace("unlimited", size))
            for case in cases
            for size in sizes
        ]
        plan = replace(info.plan, mode="open", levels=(), capacity="p95=200ms", sizes=sizes)
        run = Folder(folder)
        run.write(replace(info, plan=plan, cases=tuple(cases), skips=()))
        write_json(run.directory / ADDRESSES_FILE, {"home": ["/", "/static/site.css"]})
        (folder / "verify.jsonl").unlink()
        for case in cases:
            identity = {name: getattr(case, name) for name in ("case_id", "stack", "layer", "workload", "size")}
            for number, held in enumerate(HELD[case.layer], 1):
                for rate, latency in ((50, 20.0), (held, 90.0), (held * 1.06 // 1, 450.0)):
                    run.append(change(replace(at_rate(int(rate), latency, number), **identity)))
        return folder

    return made
