"""The folder of `bench faults`: written line by line, read back, and refused where it is something else."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from bench.results.faults import (
    FORMAT,
    INFO_FILE,
    OUTCOMES_FILE,
    FaultOutcome,
    FaultsFolder,
    FaultsInfo,
    FaultsPlan,
    read_faults,
)
from bench.results.records import ResultsError, describe
from tests.bench.results.run_data import ENVIRONMENT

PLAN = FaultsPlan(("one",), ("none",), ("worker",), 1, "unlimited", "sqlite", {"interference": 0.25})
INFO = FaultsInfo(FORMAT, ("bench", "faults"), "now", None, PLAN, ENVIRONMENT)
OUTCOME = FaultOutcome("a", "one", "none", "unlimited", "sqlite", "worker", "killed", 1, "now", "ok", failed_new=0)


@pytest.fixture
def folder(tmp_path):
    made = FaultsFolder(tmp_path / "faults")
    made.create(INFO)
    return made


def test_what_was_written_is_read(folder):
    folder.append(OUTCOME)
    folder.append(replace(OUTCOME, status="voided", reason="busy"))
    run = read_faults(folder.directory)
    assert run.info == INFO
    assert [outcome.status for outcome in run.outcomes] == ["ok", "voided"]
    assert run.latest["a"].word == "VOIDED"


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "pass"),
        ({"declared": "it has no master"}, "declared"),
        ({"status": "failed"}, "FAIL"),
        ({"status": "skipped"}, "skipped"),
    ],
)
def test_an_outcome_in_a_word(changes, word):
    assert replace(OUTCOME, **changes).word == word


def test_failed_requests_on_both_kinds_of_connection():
    assert replace(OUTCOME, failed_new=2, failed_kept=1).failed == 3
    assert replace(OUTCOME, failed_new=None).failed is None


def test_every_field_says_what_it_means():
    for record in (FaultOutcome, FaultsInfo, FaultsPlan):
        assert set(describe(record)) == {item.name for item in fields(record)}
        assert all(sentence.endswith(".") for sentence in describe(record).values())


def test_a_torn_last_line_is_ignored_and_cut_off(folder):
    folder.append(OUTCOME)
    path = folder.directory / OUTCOMES_FILE
    path.write_bytes(path.read_bytes() + b'{"fault_id": "b", ')
    assert len(read_faults(folder.directory).outcomes) == 1
    folder.repair()
    folder.append(OUTCOME)
    assert len(read_faults(folder.directory).outcomes) == 2


def test_two_at_once_are_refused(folder):
    with (
        folder.locked(),
        pytest.raises(ResultsError, match="faults are being made in it"),
        FaultsFolder(folder.directory).locked(),
    ):
        pass


def test_other_folders_are_refused_in_one_line(tmp_path, folder):
    with pytest.raises(ResultsError, match=r"it has no faults.json; give a folder that"):
        read_faults(tmp_path)
    with pytest.raises(ResultsError, match="not empty; give --to a new folder"):
        FaultsFolder(folder.directory).create(INFO)
    path = folder.directory / INFO_FILE
    path.write_text(path.read_text().replace(f'"format": {FORMAT}', '"format": 9'))
    with pytest.raises(ResultsError, match="format 9 of another version, and this one reads"):
        read_faults(folder.directory)
