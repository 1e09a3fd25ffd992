"""A run's folder is read back as written, and other folders are refused in one clear line."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from dataclasses import asdict, replace

import pytest

from bench.cli import main
from bench.measure.records import records
from bench.measure.records.folder import Folder, read_run
from bench.measure.records.records import ResultsError
from bench.verify.outcome import Outcome
from tests.bench.measure.records.run_data import ENVIRONMENT, INFO, TRIAL, failed


@pytest.fixture
def folder(tmp_path):
    written = Folder(tmp_path / "run")
    written.create(INFO, ENVIRONMENT)
    written.append(TRIAL)
    written.append(Outcome("one", "none", "status", True, "200", "200"))
    return written


def test_what_is_written_is_read_back(folder):
    folder.append(failed(log="raw/x/load.txt"))
    run = read_run(folder.directory)
    assert run.info == INFO
    assert run.environment == ENVIRONMENT
    assert run.trials == (TRIAL, failed(log="raw/x/load.txt"))
    assert run.checks == (Outcome("one", "none", "status", True, "200", "200"),)


def test_a_field_of_a_newer_program_is_left_out(folder):
    line = json.dumps({**asdict(TRIAL), "something_new": 1.0})
    (folder.directory / "trials.jsonl").write_text(line + "\n")
    assert read_run(folder.directory).trials == (TRIAL,)


@pytest.mark.parametrize("words", [["report"], ["compare", "x"], ["run", "--resume"]], ids=lambda words: words[0])
def test_a_folder_of_an_earlier_version_is_refused_in_one_line(folder, capsys, words):
    """Guards and figures have other names there; the advice is to make the run again."""
    (folder.directory / "run.json").write_text(json.dumps(asdict(INFO) | {"format": 3}))
    command, *more = words
    more = [str(folder.directory) if word == "x" else word for word in more]
    assert main.main([command, *more, str(folder.directory)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    where = folder.directory / "run.json"
    assert line == (
        f"benchapp {command}: {where}: format 3 of an earlier version, and this one reads {records.FORMAT}; "
        "make the run again"
    )


def test_a_discarded_trial_keeps_its_figures_and_an_open_loop_has_a_rate(folder):
    discarded = replace(TRIAL, status="discarded", reason="drift", level_connections=None, rate_requested=200.0)
    folder.append(discarded)
    assert read_run(folder.directory).trials[-1] == discarded
    assert (discarded.level, discarded.mode) == (200, "open")


@pytest.mark.parametrize("torn", ['{"trial_id": "one', '{"trial_id": "one\n', "\0\0\0\n"])
def test_a_torn_last_line_is_not_a_trial_and_is_cut_before_the_next(folder, torn):
    path = folder.directory / "trials.jsonl"
    path.write_text(path.read_text() + torn)
    assert read_run(folder.directory).trials == (TRIAL,)
    folder.repair()
    folder.append(failed())
    assert read_run(folder.directory).trials == (TRIAL, failed())


def test_a_last_line_that_lacks_only_its_end_counts(folder):
    path = folder.directory / "trials.jsonl"
    path.write_text(path.read_text().rstrip("\n"))
    folder.repair()
    folder.append(failed())
    assert read_run(folder.directory).trials == (TRIAL, failed())


def test_a_directory_that_is_not_there(tmp_path):
    with pytest.raises(ResultsError) as error:
        read_run(tmp_path / "x")
    assert str(error.value) == (f"{tmp_path / 'x'}: no such directory; give a folder that `python -m bench run` made")


TWO_THIRDS = json.dumps({**asdict(TRIAL), "figures": {**asdict(TRIAL.figures), "thirds": [1, 2]}})


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("run.json", "{", "run.json: cannot be read as JSON: Input data was truncated; restore the file"),
        ("run.json", "[]", "run.json: cannot be read as JSON: Expected `object`, got `array`; restore"),
        ("run.json", '{"command": "\udcff"}', "run.json: cannot be read as JSON: "),
        ("run.json", '{"format": 99}', "run.json: format 99 of another version, and this one reads"),
        ("run.json", "{}", "run.json: format None of another version"),
        ("run.json", json.dumps({"format": records.FORMAT}), "run.json: Object missing required field `command`;"),
        ("environment.json", '{"cpu_model": 7}', "environment.json: Expected `str | null`, got `int` - at `$.cpu_"),
        ("trials.jsonl", "[]\n", "trials.jsonl line 1: Expected `object`, got `array`; restore it or measure again"),
        ("trials.jsonl", "torn\n{}\n", "trials.jsonl line 1: JSON is malformed: "),
        ("trials.jsonl", "{}\n", "trials.jsonl line 1: Object missing required field `trial_id`;"),
        (
            "trials.jsonl",
            TWO_THIRDS,
            "trials.jsonl line 1: Expected ",
        ),
        ("trials.jsonl", json.dumps({**asdict(TRIAL), "status": "good"}), "trials.jsonl line 1: Invalid enum"),
        (
            "trials.jsonl",
            json.dumps({**asdict(TRIAL), "figures": None}),
            "trials.jsonl line 1: trial one~none~home~unlimited~sqlite~16~r1: status is ok without figures",
        ),
        ("workloads.json", '{"home": [7]}', "workloads.json: Expected `str`, got `int` - at `$[...][0]`; restore it"),
    ],
)
def test_a_broken_folder_is_refused_with_the_file_and_the_fault(folder, name, content, message):
    (folder.directory / name).write_text(content, errors="surrogateescape")
    with pytest.raises(ResultsError) as error:
        read_run(folder.directory)
    assert f"{folder.directory}/{message}" in str(error.value)
    assert "\n" not in str(error.value)


def test_an_incomplete_folder_names_the_file(folder):
    (folder.directory / "environment.json").unlink()
    with pytest.raises(ResultsError, match=r"environment\.json: no such file"):
        read_run(folder.directory)


def test_a_run_that_has_measured_nothing_yet_is_read(folder):
    (folder.directory / "trials.jsonl").unlink()
    assert read_run(folder.directory).trials == ()


def test_a_folder_is_not_used_twice(folder):
    with pytest.raises(ResultsError, match="already holds a run; go on with --resume"):
        folder.create(INFO, ENVIRONMENT)


def test_a_folder_whose_making_was_killed_is_made_again(folder):
    for name in ("run.json", "trials.jsonl", "verify.jsonl"):
        (folder.directory / name).unlink()
    (folder.directory / "run.json.new").write_text("{")
    folder.create(INFO, ENVIRONMENT)
    assert read_run(folder.directory).info == INFO


def test_a_folder_with_something_else_in_it_is_not_touched(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(ResultsError, match="not empty, and not a run; name a new folder by --output"):
        Folder(tmp_path).create(INFO, ENVIRONMENT)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_lock_that_a_killed_process_left_to_a_child_for_a_moment_is_waited_for(folder):
    held = os.open(folder.directory, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    timer = threading.Timer(0.3, os.close, [held])
    timer.start()
    with folder.locked():
        assert not timer.is_alive()


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="file/run: cannot be made: Not a directory"):
        Folder(tmp_path / "file" / "run").create(INFO, ENVIRONMENT)


def test_paths_in_records_are_relative_to_the_folder(folder, tmp_path):
    assert folder.relative(folder.raw / "x" / "load.err") == "raw/x/load.err"
    assert folder.relative(tmp_path / "elsewhere.log") == "elsewhere.log"
    assert folder.relative(None) is None
