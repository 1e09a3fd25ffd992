"""A run's folder: what is written is read back, and what is not a run is refused in one clear line."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace

import pytest

from bench.results import records

ENVIRONMENT = records.Environment(
    cpu_model="Example 3000",
    cores=2,
    memory_bytes=8_000_000_000,
    kernel="Linux 6.1",
    os="Debian GNU/Linux 12",
    hostname=None,
    python="CPython 3.11.7",
    packages={"Django": "5.2.19"},
    programs={},
    load_tool=records.LoadTool(name="wrk", version="4.1.0", fallback=False),
    commit=None,
    dirty=None,
)

INFO = records.RunInfo(
    format=records.FORMAT,
    command=("python", "-m", "bench", "run"),
    started_at="2026-11-21T08:00:00+00:00",
    finished_at=None,
    plan=records.Plan(
        stacks=("one",),
        layers=("none",),
        workloads=("home",),
        levels=(16,),
        rounds=1,
        duration_s=2.0,
        warmup_s=2.0,
        sizes=("unlimited",),
        database="sqlite",
        rows_total=None,
        order_seed=7,
    ),
    cases=(records.Case("one~none~home~unlimited~sqlite", "one", "none", "home", "unlimited", "sqlite"),),
    skips=(records.Skip("one", "files", None, "no server of its chain serves files"),),
    notes=("2 cores",),
)

TRIAL = records.Trial(
    trial_id="one~none~home~unlimited~sqlite~16~r1",
    case_id="one~none~home~unlimited~sqlite",
    stack="one",
    layer="none",
    workload="home",
    size="unlimited",
    database="sqlite",
    level_connections=16,
    round=1,
    state="warm",
    status="ok",
    reason=None,
    log=None,
    started_at="2026-11-21T08:00:01+00:00",
    duration_s=2.0,
    tool="wrk",
    requests_total=200,
    requests_per_second=100.0,
    bytes_per_second=900_000.0,
    latency_mean_ms=160.0,
    latency_p50_ms=150.0,
    latency_p90_ms=200.0,
    latency_p99_ms=None,
    latency_max_ms=300.0,
    errors_connect=0,
    errors_read=0,
    errors_timeout=0,
    responses_not_2xx=0,
    memory={"one": ((0.0, 1000), (1.0, 2000)), "closed": ()},
    memory_peak_bytes={"one": 2000, "closed": None},
    cpu_seconds={"one": 1.5, "closed": None},
    processes={"one": 5, "closed": None},
    time_to_ready_s=0.4,
    keep_alive=True,
)


@pytest.fixture
def folder(tmp_path):
    written = records.Folder(tmp_path / "run")
    written.create()
    written.write_info(INFO)
    written.write_environment(ENVIRONMENT)
    written.append_trial(TRIAL)
    written.append_checks([records.Outcome("one", "none", "status", True, "200", "200")])
    return written


def failed(trial=TRIAL, **changes):
    nothing = dict.fromkeys(records.FIGURES)
    return replace(trial, **nothing, status="failed", reason="503 answers", **changes)


def test_what_is_written_is_read_back(folder):
    folder.append_trial(failed(log="raw/x/load.txt"))
    run = records.read_run(folder.directory)
    assert run.info == INFO
    assert run.environment == ENVIRONMENT
    assert run.trials == (TRIAL, failed(log="raw/x/load.txt"))
    assert run.checks == (records.Outcome("one", "none", "status", True, "200", "200"),)


@pytest.mark.parametrize("record", [value for value in vars(records).values() if hasattr(value, "__match_args__")])
def test_every_field_is_explained_in_a_sentence(record):
    if record is records.Run:
        return
    sentences = records.describe(record)
    assert list(sentences) == [field.name for field in fields(record)]
    assert all(sentence.endswith(".") and sentence[:1] for sentence in sentences.values())


def test_a_field_of_a_newer_program_is_left_out(folder):
    line = json.dumps({**asdict(TRIAL), "something_new": 1.0})
    (folder.directory / "trials.jsonl").write_text(line + "\n")
    assert records.read_run(folder.directory).trials == (TRIAL,)


def test_a_folder_of_the_first_format_is_read_with_nulls(folder):
    since = [field.name for field in fields(records.Trial)].index("rate_requested")
    old = dict(list(asdict(TRIAL).items())[:since])
    (folder.directory / "trials.jsonl").write_text(json.dumps(old))
    info = asdict(INFO) | {"format": 1}
    for name in ("mode", "margin", "guards"):
        del info["plan"][name]
    (folder.directory / "run.json").write_text(json.dumps(info))
    run = records.read_run(folder.directory)
    assert (run.info.plan.mode, run.info.plan.margin) == ("closed", 0.05)
    assert (run.trials[0].histogram, run.trials[0].level, run.trials[0].mode) == (None, 16, "closed")


def test_a_voided_trial_keeps_its_figures_and_an_open_loop_has_a_rate(folder):
    voided = replace(TRIAL, status="voided", reason="drift", level_connections=None, rate_requested=200.0)
    folder.append_trial(voided)
    assert records.read_run(folder.directory).trials[-1] == voided
    assert (voided.level, voided.mode) == (200, "open")


@pytest.mark.parametrize("torn", ['{"trial_id": "one', '{"trial_id": "one\n', "\0\0\0\n"])
def test_a_torn_last_line_is_not_a_trial_and_is_cut_before_the_next(folder, torn):
    path = folder.directory / "trials.jsonl"
    path.write_text(path.read_text() + torn)
    assert records.read_run(folder.directory).trials == (TRIAL,)
    folder.repair()
    folder.append_trial(failed())
    assert records.read_run(folder.directory).trials == (TRIAL, failed())


def test_a_last_line_that_lacks_only_its_end_is_kept(folder):
    path = folder.directory / "trials.jsonl"
    path.write_text(path.read_text().rstrip("\n"))
    folder.repair()
    folder.append_trial(failed())
    assert records.read_run(folder.directory).trials == (TRIAL, failed())


def test_a_directory_that_is_not_there(tmp_path):
    with pytest.raises(records.ResultsError) as error:
        records.read_run(tmp_path / "x")
    assert str(error.value) == (f"{tmp_path / 'x'}: no such directory; give a folder that `python -m bench run` made")


def test_a_directory_that_is_not_a_run(tmp_path):
    with pytest.raises(records.ResultsError) as error:
        records.read_run(tmp_path)
    assert str(error.value) == (
        f"{tmp_path}: not a run, it has no run.json; give a folder that `python -m bench run` made"
    )


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("run.json", "{", "run.json: cannot be read as JSON"),
        ("run.json", "[]", "run.json: holds list, not a JSON object"),
        ("run.json", '{"format": 99}', "run.json: format is 99 and this program reads up to 2"),
        ("run.json", '{"format": 1}', "run.json: command is missing (Command line of the run.)"),
        ("environment.json", '{"cpu_model": 7}', "environment.json: cpu_model: 7 is not what belongs there"),
        ("trials.jsonl", "[]\n", "trials.jsonl line 1: not a JSON object"),
        ("trials.jsonl", "torn\n{}\n", "trials.jsonl line 1: not JSON"),
        ("trials.jsonl", "{}\n", "trials.jsonl line 1: trial_id is missing"),
    ],
)
def test_a_broken_folder_is_refused_with_the_file_and_the_fault(folder, name, content, message):
    (folder.directory / name).write_text(content)
    with pytest.raises(records.ResultsError) as error:
        records.read_run(folder.directory)
    assert f"{folder.directory}/{message}" in str(error.value)
    assert "\n" not in str(error.value)


def test_an_incomplete_folder_names_the_file(folder):
    (folder.directory / "environment.json").unlink()
    with pytest.raises(records.ResultsError, match=r"environment\.json: no such file"):
        records.read_run(folder.directory)


def test_a_run_that_has_measured_nothing_yet_is_read(folder):
    (folder.directory / "trials.jsonl").unlink()
    assert records.read_run(folder.directory).trials == ()


def test_a_folder_is_not_used_twice(folder):
    with pytest.raises(records.ResultsError, match="already holds a run; continue it with --resume"):
        folder.create()


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(records.ResultsError, match="not empty, and not a run; give --to a new folder"):
        records.Folder(tmp_path).create()
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(records.ResultsError, match="file/run: cannot be made: Not a directory"):
        records.Folder(tmp_path / "file" / "run").create()


def test_paths_in_records_are_relative_to_the_folder(folder, tmp_path):
    assert folder.relative(folder.raw / "x" / "load.err") == "raw/x/load.err"
    assert folder.relative(tmp_path / "elsewhere.log") == "elsewhere.log"
    assert folder.relative(None) is None


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"state": "hot"}, "not cold or warm"),
        ({"status": "good"}, "not ok, failed or voided"),
        ({"requests_per_second": None}, "ok without requests_per_second"),
        ({"status": "failed"}, "failed without a reason"),
        ({"status": "voided"}, "voided without a reason"),
        ({"status": "voided", "reason": "x", "requests_per_second": None}, "voided without requests_per_second"),
        ({"rate_requested": 100.0}, "level_connections or rate_requested, and not both"),
        ({"level_connections": None}, "level_connections or rate_requested, and not both"),
        ({"thirds": (1.0, 2.0)}, "thirds are 2 numbers, not 3"),
        ({"status": "failed", "reason": "x"}, "failed and yet it has requests_total"),
    ],
)
def test_a_failure_is_never_a_number(changes, message):
    with pytest.raises(records.ResultsError, match=message):
        replace(TRIAL, **changes)
