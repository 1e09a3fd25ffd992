"""A full disk at any moment of a run stops the run in one line, fails no case, and the run can be resumed."""

from __future__ import annotations

import pytest

from bench.cli import run
from bench.errors import BenchError
from bench.measure.records.folder import Folder, read_run
from bench.measure.run import load_process
from tests.bench.measure.run.fake_sites import QUICK, FakeSites, arguments


def measured(sites, folder):
    return run.main(arguments([*QUICK, "--stack", "one", "--output", str(folder)]), sites.bed)


def test_a_run_that_cannot_begin_leaves_no_folder(small_disk, sites):
    small_disk.fill()
    folder = small_disk.folder / "run"
    with pytest.raises(BenchError) as error:
        measured(sites, folder)
    message = "cannot be written: No space left on device; make room, or name another folder by --output"
    assert str(error.value) == f"{folder}: {message}"
    assert not folder.exists()


@pytest.mark.servers
@pytest.mark.parametrize(
    ("owner", "name", "after"),
    [
        (FakeSites, "rows", False),  # then run.json and environment.json are written
        (FakeSites, "queries_per_request", False),  # then the files of the load tool
        (load_process, "_start", True),  # then the output of the load tool, by itself
        (Folder, "append", False),
    ],
    ids=["journal", "raw", "output", "trial"],
)
def test_a_disk_that_fills_up_stops_the_run_until_there_is_room(small_disk, sites, monkeypatch, owner, name, after):
    folder, real = small_disk.folder / "run", getattr(owner, name)

    def full(*words, **more):
        if not after:
            small_disk.fill()
        result = real(*words, **more)
        small_disk.fill()
        return result

    monkeypatch.setattr(owner, name, full)
    with pytest.raises(BenchError) as error:
        measured(sites, folder)
    resume = f"python -m bench run --resume {folder}"
    assert str(error.value) == f"stopped: {folder}: No space left on device; make room and resume with: {resume}"
    assert read_run(folder).trials == ()

    monkeypatch.setattr(owner, name, real)
    small_disk.free()
    assert run.main(arguments(["--resume", str(folder)]), sites.bed) == 0
    resumed = read_run(folder)
    assert [trial.status for trial in resumed.trials] == ["ok"]
    assert [check.check for check in resumed.checks] == ["status", "content"]
    assert resumed.info.finished_at
    assert (folder / "configs" / "one~none" / "file").read_text() == "one none"
