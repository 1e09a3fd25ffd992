"""The folder of `benchapp faults`: written line by line, read back, and refused if it is another kind of folder."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.measure.records.fault_outcomes import FaultOutcome
from bench.measure.records.folder import Folder, read_faults, read_run
from bench.measure.records.records import ResultsError
from tests.bench.measure.records import run_data

INFO = replace(run_data.INFO, plan=replace(run_data.INFO.plan, faults=("worker",)))
OUTCOME = FaultOutcome("a", "one", "none", "unlimited", "sqlite", "worker", "killed", 1, "now", "ok", failed_new=0)


@pytest.fixture
def folder(tmp_path):
    created = Folder(tmp_path / "faults")
    created.create(INFO, run_data.ENVIRONMENT)
    return created


def test_what_was_written_is_read(folder):
    folder.append(OUTCOME)
    folder.append(replace(OUTCOME, status="discarded", reason="busy"))
    run = read_faults(folder.directory)
    assert run.info == INFO
    assert [outcome.status for outcome in run.outcomes] == ["ok", "discarded"]
    assert run.latest_outcomes["a"].word == "discarded"


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "passed"),
        ({"known_limitation": "it has no master"}, "known limitation"),
        ({"status": "failed"}, "failed"),
        ({"status": "skipped"}, "skipped"),
    ],
)
def test_an_outcome_in_a_word(changes, word):
    assert replace(OUTCOME, **changes).word == word


def test_failed_requests_on_both_kinds_of_connection():
    assert replace(OUTCOME, failed_new=2, failed_kept=1).failed == 3
    assert replace(OUTCOME, failed_new=None).failed is None


def test_a_folder_says_which_command_goes_on_with_it(folder, tmp_path):
    assert read_run(folder.directory).resume_command() == f"python -m bench faults --resume {folder.directory}"
    folder.write(run_data.INFO)
    with pytest.raises(ResultsError, match="it holds no faults; give a folder that"):
        read_faults(folder.directory)
