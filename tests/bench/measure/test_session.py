"""Runs: what is planned, in what order it is measured, what is recorded, and that stopping loses nothing."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from bench import paths, programs
from bench.catalog import compose
from bench.cli import run
from bench.errors import BenchError
from bench.host import machine, pin, ports
from bench.measure import calibrate, guards, plan
from bench.report.model import arrange
from bench.results import records
from bench.results.folder import Folder, read_run
from bench.results.records import Case
from bench.serve import deployment
from tests.bench.measure.fake_host import FakeHost, arguments

# What the machine does meanwhile is not the question here.
UNGUARDED = [word for name in guards.BOUNDS for word in ("--guard", f"{name}=off")]
QUICK = ["--duration", "1", "--warmup", "0", "--rounds", "1", "--workload", "home", "--layer", "none", *UNGUARDED]


@pytest.fixture(autouse=True)
def no_database_of_the_caller(monkeypatch):
    monkeypatch.delenv("DATABASE_URL", raising=False)


@pytest.fixture
def host():
    return FakeHost()


@pytest.fixture
def go(tmp_path, host):
    """Run with these arguments on the fake host; gives the exit status and what was recorded."""

    def went(*words, to="run"):
        where = [] if "--resume" in words else ["--to", str(tmp_path / to)]
        status = run.main(arguments([*QUICK, *where, *words] if where else list(words)), host)
        return status, read_run(tmp_path / to)

    return went


# ------------------------------------------------------------------------------------- planning


def case(stack, layer="none", workload="home"):
    return Case("~".join((stack, layer, workload)), stack, layer, workload, "unlimited", "sqlite")


CASES = [case(stack, layer, work) for stack in "abc" for layer in ("none", "x") for work in ("home", "login")]


def test_each_round_brings_each_deployment_up_once_and_measures_all_its_cases():
    order = plan.schedule(CASES, [8, 16], rounds=3, seed=1)
    assert len(order) == 3 * 6
    for number in (1, 2, 3):
        assert Counter((item.stack, item.layer) for item in order if item.round == number) == Counter(
            {(stack, layer): 1 for stack in "abc" for layer in ("none", "x")}
        )
    trials = [measurement.trial_id for item in order for measurement in item.measurements]
    assert len(trials) == len(set(trials)) == len(CASES) * 2 * 3


def test_the_order_is_shuffled_in_each_round_and_the_same_for_the_same_seed():
    def keys(seed, number):
        return [(item.stack, item.layer) for item in plan.schedule(CASES, [1], 3, seed) if item.round == number]

    orders = {tuple(keys(seed, number)) for seed in range(5) for number in (1, 2, 3)}
    assert len(orders) > 10
    assert keys(7, 2) == keys(7, 2)


# ------------------------------------------------------------------------------------- measuring


@pytest.mark.servers
def test_a_run_records_what_was_asked_and_what_was_measured(go, host, capsys):
    host.misfits["two", "files"] = "no server of its chain serves files"
    words = ["--stack", "one", "--stack", "two", "--layer", "files", "--rounds", "2"]
    status, recorded = go(*words)
    assert status == 0
    assert [trial.status for trial in recorded.trials] == ["ok"] * 6
    assert {case.case_id for case in recorded.info.cases} == {
        "one~none~home~unlimited~sqlite",
        "one~files~home~unlimited~sqlite",
        "two~none~home~unlimited~sqlite",
    }
    assert recorded.info.cases[0].notes == ("one is small",)
    assert recorded.info.notes[-1] == "the machine is odd"
    assert "one is small" not in recorded.info.notes
    assert recorded.info.skips == (records.Skip("two", "files", None, "no server of its chain serves files"),)
    assert (recorded.info.plan.rows_total, recorded.environment.rows_seed) == (1234, 7)
    assert recorded.environment.rows_total == 1234
    assert recorded.info.plan.order_seed is not None
    assert recorded.info.finished_at
    assert {(check.stack, check.layer) for check in recorded.checks} == {
        ("one", "none"),
        ("one", "files"),
        ("two", "none"),
    }
    assert recorded.environment.programs == {"server": "1.0"}
    said = capsys.readouterr().out
    assert "skipped: two with layer files: no server of its chain serves files" in said
    assert "round 2 of 2, case 3 of 3: " in said
    assert "time left ~" in said
    assert re.search(r"^stability of one, layer none, \w+: (HIGH|MEDIUM|LOW)", said, re.M)
    assert said.splitlines()[-1].endswith(f"next: python -m bench report {recorded.directory}")


@pytest.mark.servers
def test_a_deployment_is_verified_once_and_always_taken_down(go, host):
    go("--stack", "one", "--rounds", "2")
    assert host.log == [
        *("up one none", "verify one none", "empty one none", "down one none"),
        *("up one none", "down one none"),
    ]


@pytest.mark.servers
def test_a_variant_of_two_values_is_brought_up_where_every_server_can_work(go):
    _, recorded = go("--stack", "one@processes=2,threads=3")
    assert [(trial.stack, trial.status) for trial in recorded.trials] == [("one@processes=2,threads=3", "ok")]
    assert (recorded.directory / "raw" / "one@processes=2+threads=3~none~r1" / "logs" / "server.log").exists()


@pytest.mark.servers
def test_what_servers_wrote_is_kept_and_what_they_stored_is_not(go):
    _, recorded = go("--stack", "one")
    assert (recorded.directory / "configs" / "one~none" / "file").read_text() == "one none"
    assert (recorded.directory / "raw" / "one~none~r1" / "logs" / "server.log").exists()
    assert not (recorded.directory / "raw" / "one~none~r1" / "store").exists()


@pytest.mark.servers
def test_the_addresses_of_the_session_are_looked_up_once_and_kept(go):
    _, recorded = go("--stack", "one", "--workload", "session")
    kept = json.loads((recorded.directory / "workloads.json").read_text())
    assert set(kept) == {"home", "session"}
    assert kept["session"][:4] == ["/", "/static/site.1.css", "/static/site.2.js", "/static/logo.3.svg"]
    assert "/posts/page/38/" in kept["session"]


@pytest.mark.servers
def test_a_workload_that_leads_nowhere_fails_alone(go, host):
    host.bare.add("one")
    status, recorded = go("--stack", "one", "--workload", "session")
    assert status == 1
    assert {trial.workload: trial.reason for trial in recorded.trials} == {
        "home": None,
        "session": "workload session, step 13: /posts/ links to no post",
    }


@pytest.mark.servers
def test_wrong_answers_are_never_measured(go, host):
    host.wrong.add("two")
    status, recorded = go("--stack", "one", "--stack", "two", "--rounds", "2")
    assert status == 1
    by_stack = {stack: [trial for trial in recorded.trials if trial.stack == stack] for stack in ("one", "two")}
    assert [trial.status for trial in by_stack["one"]] == ["ok", "ok"]
    assert [trial.status for trial in by_stack["two"]] == ["failed", "failed"]
    for trial in by_stack["two"]:
        assert trial.reason == "not measured, it gives wrong answers: 1 check failed: content"
        assert trial.log == "verify.jsonl"
        assert trial.requests_per_second is None
    # In the second round it is known to be wrong, and is not even brought up.
    assert host.log.count("up two none") == 1


@pytest.mark.servers
def test_a_deployment_that_does_not_come_up_fails_and_the_run_goes_on(go, host, capsys):
    host.refuses.add("two")
    status, recorded = go("--stack", "one", "--stack", "two")
    assert status == 1
    trials = {trial.stack: trial for trial in recorded.trials}
    assert trials["one"].status == "ok"
    assert trials["two"].status == "failed"
    assert trials["two"].reason == "server exited with status 1: two is tired"
    assert trials["two"].log == "raw/two~none~r1/logs/server.log"
    assert (recorded.directory / trials["two"].log).read_text() == "it began\n"
    assert recorded.info.finished_at
    said = capsys.readouterr().out
    assert "FAILED: server exited with status 1: two is tired (see raw/two~none~r1/logs/server.log)" in said
    assert "1 of 2 trials failed" in said


@pytest.mark.servers
def test_bad_answers_fail_their_trials_and_the_run_goes_on(go, host):
    host.breaks.add("two")
    status, recorded = go("--stack", "one", "--stack", "two", "--workload", "login")
    assert status == 1
    assert {trial.stack for trial in recorded.trials if trial.status == "ok"} == {"one"}
    assert {trial.reason for trial in recorded.trials if trial.stack == "two"} == {
        "before the load: GET /: status 503, not 200",
        "before the load: GET /login/: status 503, not 200",
    }


@pytest.mark.servers
def test_a_server_that_dies_in_one_trial_does_not_spoil_the_next(go, host):
    # The addresses are looked up on `one`, which is well.
    host.dies["two"] = 1
    go("--stack", "one", to="first")
    status, recorded = go("--stack", "two", "--workload", "login")
    assert status == 1
    assert [trial.status for trial in recorded.trials] == ["failed", "ok"]
    # Which workload comes first is shuffled.
    address = {"home": "/", "login": "/login/"}[recorded.trials[0].workload]
    why = f"before the load: GET {address}: status 503, not 200; server was killed by SIGKILL"
    assert recorded.trials[0].reason == why
    assert host.log.count("up two none") == 2


def test_nothing_that_can_run_here_is_an_error(go, host):
    host.misfits["one", "none"] = "program not installed: server"
    with pytest.raises(BenchError, match="nothing to measure here: one with layer none: program not installed: server"):
        go("--stack", "one")


# ------------------------------------------------------------------------------------- open loop, guards, faults


@pytest.mark.servers
def test_an_open_loop_run_has_rates_for_levels(go, capsys):
    status, recorded = go("--stack", "one", "--rate", "20", "--rate", "40")
    assert status == 0
    assert (recorded.info.plan.mode, recorded.info.plan.levels) == ("open", (20, 40))
    assert recorded.environment.load_tool.name == "openloop"
    assert sorted(trial.requests_total for trial in recorded.trials) == [20, 40]
    for trial in recorded.trials:
        assert (trial.level_connections, trial.rate_requested, trial.level) == (None, trial.requests_total, trial.level)
        assert (trial.requests_dropped, trial.statuses) == (0, {"200": trial.level})
        # Too few requests for a 99th percentile.
        assert trial.latency_p50_ms is not None and trial.latency_p99_ms is None
    assert "home, 40 requests/s due: " in capsys.readouterr().out


@pytest.mark.servers
def test_a_run_without_any_load_tool_of_the_system(go, monkeypatch):
    """Only what pip installs: the load tool of this project makes the closed loop, and the run says so."""
    monkeypatch.setattr(programs, "find", lambda names, search=(): Path(sys.executable) if "python3" in names else None)
    status, recorded = go("--stack", "one", "--level", "3")
    assert status == 0
    assert (recorded.environment.load_tool.name, recorded.environment.load_tool.fallback) == ("closedloop", True)
    assert "load made by closedloop, the load tool of this project" in "".join(recorded.info.notes)
    for trial in recorded.trials:
        assert (trial.tool, trial.rate_requested) == ("closedloop", None)
        assert trial.histogram and trial.thirds and trial.statuses == {"200": trial.requests_total}


@pytest.mark.servers
def test_a_level_is_a_rate_where_the_mode_says_so(go):
    _, recorded = go("--stack", "one", "--mode", "open", "--level", "30")
    assert [trial.rate_requested for trial in recorded.trials] == [30.0]


@pytest.mark.servers
def test_a_voided_trial_keeps_its_figures_and_says_why(go, capsys):
    # No body is that large.
    status, recorded = go("--stack", "one", "--guard", "bodies=0", "--guard", "percentiles=0", "--guard", "little=0")
    (trial,) = recorded.trials
    assert (status, trial.status) == (0, "voided")
    assert trial.reason.startswith("little: rate x mean makes ")
    assert trial.requests_per_second > 0
    assert (trial.guards["bodies"], trial.guards["percentiles"]) == ("ok", "ok")
    assert recorded.info.plan.guards == {"little": 0.0, "percentiles": 0.0, "bodies": 0.0}
    said = capsys.readouterr().out
    assert "VOIDED: little: rate x mean" in said
    assert "1 of 1 trials voided: guards do not trust them" in said


@pytest.mark.servers
@pytest.mark.parametrize(
    ("shares", "statuses"),
    [([0.9, 0.1], ["voided", "ok"]), ([0.9, 0.8, 0.7], ["voided", "voided", "voided"])],
    ids=["passing", "lasting"],
)
def test_a_trial_that_other_processes_disturb_is_made_again(go, capsys, monkeypatch, tmp_path, shares, statuses):
    found = iter(shares)
    monkeypatch.setattr("bench.measure.trial.Bystanders.share", lambda *_: next(found))
    _, recorded = go("--stack", "one", "--guard", "others=0.25")
    assert [trial.status for trial in recorded.trials] == statuses
    assert len({trial.trial_id for trial in recorded.trials}) == 1
    (row,) = arrange(recorded).rows
    assert (len(row.ok), len(row.voided)) == ((1, 0) if statuses[-1] == "ok" else (0, 1))
    said = capsys.readouterr().out
    assert "others: other processes took 90% of the machine: the trial is made again" in said
    assert ("1 of 1 trials voided" in said) == (statuses[-1] == "voided")
    assert (tmp_path / "run" / "raw" / f"{recorded.trials[0].trial_id}~void1" / "load.out").exists()


@pytest.mark.servers
def test_killed_before_it_was_made_again_it_is_made_again_all_the_same(go, capsys, monkeypatch, tmp_path):
    found = iter([0.9, 0.1, 0.8, 0.1])
    monkeypatch.setattr("bench.measure.trial.Bystanders.share", lambda *_: next(found))
    go("--stack", "one", "--guard", "others=0.25")
    folder = tmp_path / "run"
    path = folder / "trials.jsonl"
    path.write_text(path.read_text().splitlines(keepends=True)[0])
    path = folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "finished_at": None}))
    capsys.readouterr()
    _, recorded = go("--resume", str(folder))
    assert [trial.status for trial in recorded.trials] == ["voided", "voided", "ok"]
    assert " voided: guards" not in capsys.readouterr().out
    assert (folder / "raw" / f"{recorded.trials[0].trial_id}~void2" / "load.out").exists()


@pytest.mark.servers
def test_a_page_that_changes_under_load_voids_its_trial(go, host):
    host.changes.add("one")
    _, recorded = go("--stack", "one", "--guard", "bodies=0.05", "--duration", "3")
    assert recorded.trials[0].status == "voided"
    assert recorded.trials[0].reason.startswith("bodies: GET /: ")
    assert recorded.trials[0].bodies_checked >= 1


@pytest.mark.servers
@pytest.mark.parametrize("when", ["at the start", "in the middle"])
def test_a_database_that_is_gone_stops_a_run_once_and_it_can_go_on(go, host, tmp_path, when):
    gone = "the database cannot be used: connection refused"
    if when == "at the start":
        host.database_gone = gone
    else:
        host.refuses.add("one")
        host.gone_after_failure = gone
    with pytest.raises(BenchError) as error:
        go("--stack", "one", "--stack", "two")
    folder = tmp_path / "run"
    assert str(error.value) == (f"stopped: {gone}; mend it and go on with: python -m bench run --resume {folder}")
    assert len([trial for trial in read_run(folder).trials if trial.status == "failed"]) == 0
    host.database_gone, host.gone_after_failure = "", ""
    host.refuses.clear()
    status, recorded = go("--resume", str(folder))
    assert (status, len(recorded.trials)) == (0, 2)


def test_what_refuses_two_stacks_alike_stops_the_run(go, host, tmp_path):
    host.unreadable = "layer.toml: unknown key"
    with pytest.raises(
        BenchError, match=r"stopped: neither \w+ nor \w+ can be brought up: layer\.toml: unknown key; mend"
    ):
        go("--stack", "one", "--stack", "two", "--stack", "three")
    assert [trial.status for trial in read_run(tmp_path / "run").trials] == ["failed"]


@pytest.mark.servers
def test_configurations_are_hashed_without_paths_and_ports(go, tmp_path):
    _, first = go("--stack", "one")
    _, second = go("--stack", "one", to="again")
    assert first.environment.configs == second.environment.configs
    assert set(first.environment.configs) == {"one~none/file"}


def test_paths_and_listening_ports_do_not_count_in_a_hash(tmp_path):
    hashes = []
    for number in (1, 2):
        folder = tmp_path / f"run{number}"
        folder.mkdir()
        with socket.create_server(("127.0.0.1", ports.free_port())) as server:
            port = server.getsockname()[1]
            (folder / "a.conf").write_text(f"listen 127.0.0.1:{port};\nroot {folder}/store;\nbacklog 1024;\n")
            hashes.append(machine.config_hashes(folder, {str(folder): "RUN"}))
    assert hashes[0] == hashes[1]
    (folder / "a.conf").write_text("listen 127.0.0.1:PORT;\nroot RUN/store;\nbacklog 2048;\n")
    assert machine.config_hashes(folder, {}) != hashes[0]


@pytest.mark.servers
def test_the_load_tool_is_calibrated_once_in_a_run(go, host, capsys, monkeypatch):
    monkeypatch.setattr(calibrate, "SECONDS", 1)
    host.calibrates_on = "one"
    words = ["--stack", "one", "--stack", "two", "--guard", "ceiling=0.99"]
    _, recorded = go(*words)
    ceilings = {trial.tool_ceiling_per_second for trial in recorded.trials}
    assert len(ceilings) == 1 and ceilings.pop() > 100
    assert {trial.guards["ceiling"][:2] for trial in recorded.trials} == {"ok"}
    assert host.log.count("up one none") == 2, "once for the calibration and once for the trial"
    assert " requests/s on kept connections at most with each core it keeps busy" in capsys.readouterr().out


# ------------------------------------------------------------------------------------- cores


@pytest.mark.parametrize(
    ("available", "wanted", "expected"),
    [
        (2, None, None),
        (2, True, {"load": (1,), "stack": (0,), "services": (0,)}),
        (3, True, {"load": (2,), "stack": (0, 1), "services": (0, 1)}),
        (4, None, {"load": (3,), "services": (2,), "stack": (0, 1)}),
        (8, None, {"load": (6, 7), "services": (4, 5), "stack": (0, 1, 2, 3)}),
        (8, False, None),
    ],
)
def test_cores_are_shared_out_where_there_are_enough(available, wanted, expected):
    assert pin.cores(range(available), wanted) == expected


def test_one_core_cannot_be_shared_out():
    with pytest.raises(BenchError, match="--pin needs two processor cores or more, and here is one"):
        pin.cores([0], True)


def test_a_running_tree_is_moved_with_all_its_threads():
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core")
    last = max(os.sched_getaffinity(0))
    code = (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "print(flush=True)\ntime.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        pin.move({"stack": (last,)}, "stack", [process.pid])
        tasks = [int(path.name) for path in Path(f"/proc/{process.pid}/task").iterdir()]
        assert len(tasks) == 2
        assert {tuple(os.sched_getaffinity(task)) for task in tasks} == {(last,)}
    finally:
        process.kill()
        process.communicate()


def test_what_is_started_meanwhile_stays_on_the_cores_and_the_caller_does_not():
    before = os.sched_getaffinity(0)
    last = max(before)
    with pin.on({"load": (last,)}, "load"):
        said = subprocess.run(
            [sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))"], capture_output=True, text=True
        )
    assert said.stdout.strip() == f"[{last}]"
    assert os.sched_getaffinity(0) == before


# ------------------------------------------------------------------------------------- resuming


@pytest.mark.servers
def test_a_run_goes_on_where_it_stopped_even_after_a_torn_line(go, host, tmp_path):
    go("--stack", "one", "--stack", "two")
    folder = tmp_path / "run"
    lines = (folder / "trials.jsonl").read_text().splitlines(keepends=True)
    (folder / "trials.jsonl").write_text(lines[0] + lines[1][:40])
    info = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**info, "finished_at": None}))
    host.log.clear()

    status, recorded = go("--resume", str(folder))
    assert status == 0
    assert len(recorded.trials) == len({trial.trial_id for trial in recorded.trials}) == 2
    assert (folder / "trials.jsonl").read_text().startswith(lines[0])
    assert recorded.info.finished_at
    assert len([words for words in host.log if words.startswith("up")]) == 1
    # What was verified before is not verified again.
    assert not [words for words in host.log if words.startswith("verify")]


@pytest.mark.servers
def test_a_complete_run_is_not_gone_on_with(go, tmp_path):
    go("--stack", "one")
    with pytest.raises(BenchError, match="the run is complete; next: python -m bench report"):
        go("--resume", str(tmp_path / "run"))


@pytest.mark.servers
def test_a_run_that_goes_on_in_another_environment_says_so(go, host, tmp_path):
    go("--stack", "one")
    path = tmp_path / "run" / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "finished_at": None}))
    path = tmp_path / "run" / "environment.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "kernel": "Linux 1.0"}))
    _, recorded = go("--resume", str(tmp_path / "run"))
    assert recorded.info.notes[-1] == "gone on with after a stop, with another kernel than it began with"


def start(tmp_path, *words):
    """A run on the fake host as a process, and the file that tells what its host does."""
    log = tmp_path / "host.log"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.measure.fake_host", *words],
        cwd=paths.PROJECT,
        env={**os.environ, "FAKE_HOST_LOG": str(log)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    return process, log


def wait_for(condition, process):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline and process.poll() is None, "it never came true"
        time.sleep(0.02)


def lines_of(path):
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.servers
@pytest.mark.parametrize(
    "number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)], ids=["int", "term", "kill"]
)
def test_stopped_in_the_middle_it_loses_the_trial_under_way_and_no_more(tmp_path, number, status, host):
    folder = tmp_path / "run"
    words = ["--stack", "one", "--stack", "two", *QUICK, "--duration", "2", "--to", str(folder)]
    process, log = start(tmp_path, *words)
    try:
        wait_for(lambda: len(lines_of(folder / "trials.jsonl")) == 1, process)
        # The second deployment is up and its trial under way.
        wait_for(lambda: len(list(folder.glob("raw/*/load.out"))) == 2, process)
        process.send_signal(number)
        _, stderr = process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == status
    stopped = read_run(folder)
    assert stopped.info.finished_at is None
    assert [trial.status for trial in stopped.trials] == ["ok"]
    if number != signal.SIGKILL:
        name = signal.Signals(number).name
        assert stderr == f"bench run: {name}; go on with: python -m bench run --resume {folder}\n"
        done = lines_of(log)
        assert len([line for line in done if line.startswith("up")]) == 2
        assert len([line for line in done if line.startswith("down")]) == 2

    # How the tiny site stands the load of the second trial is not the question here.
    run.main(arguments(["--resume", str(folder)]), host)
    whole = read_run(folder)
    assert whole.info.finished_at is not None
    assert whole.trials[0] == stopped.trials[0]
    assert len(whole.trials) == 2
    assert len({trial.trial_id for trial in whole.trials}) == 2


# ------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "words, message",
    [
        (["--size", "bronce"], "--size bronce: no such size; did you mean bronze?"),
        (["--workload", "homes"], "no workload called 'homes'; did you mean home?"),
        (["--database", "oracle"], "--database oracle: use sqlite, postgresql or a URL"),
        (["--tool", "jmeter"], "no load tool called 'jmeter'; there are: wrk, ab, closedloop, openloop, siege, hey"),
        (["--set", "processes"], "--set processes: write it as NAME=VALUE"),
        (["--set", "proceses=5"], "--set proceses: no such value"),
        (["--env", "DEBUG"], "--env DEBUG: write it as NAME=VALUE"),
        (["--level", "100000"], "--level 100000: too many connections; use at most 10000"),
        (["--rate", "200000"], "--level 200000: too many requests a second; use at most 100000"),
        (["--rate", "5", "--level", "6"], "--rate is --mode open with a --level; leave out --level"),
        (["--rate", "5", "--mode", "closed"], "--rate is --mode open with a --level; leave out --mode closed"),
        (["--rate", "5", "--tool", "wrk"], "--tool wrk makes no open loop"),
        (["--rounds", "10001"], "--rounds 10001: too many; use at most 10000"),
        (["--duration", "86401"], "--duration 86401: too many; use at most 86400"),
        (["--warmup", "1e9"], "--warmup 1000000000.0: too many; use at most 86400"),
        (["--guard", "litle=1"], "--guard litle=1: write it as NAME=BOUND or NAME=off; there are: little, percentiles"),
        (["--guard", "little=x"], "--guard little=x: 'x' is no bound; write a number from 0, or off"),
    ],
)
def test_what_does_not_exist_is_told_in_one_line_and_leaves_no_folder(go, tmp_path, words, message):
    with pytest.raises(BenchError) as error:
        go("--stack", "one", *words)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "words, message",
    [
        (["--to", "x" * 300], "argument --to: " + "x" * 300 + ": File name too long"),
        (["--resume", "x" * 300], "argument --resume: " + "x" * 300 + ": File name too long"),
        (["--level", "0"], "argument --level: '0' is not a whole number from 1"),
        (["--rate", "1.5"], "argument --rate: '1.5' is not a whole number from 1"),
        (["--mode", "half"], "argument --mode: invalid choice: 'half'"),
        (["--margin", "5"], "argument --margin: '5' is not a share such as 0.05"),
        (["--rounds", "two"], "argument --rounds: 'two' is not a whole number from 1"),
        (["--duration", "0.5"], "argument --duration: '0.5' is not a whole number from 1"),
        (["--warmup", "-1"], "argument --warmup: '-1' is not a number of seconds"),
        (["--warmup", "nan"], "argument --warmup: 'nan' is not a number of seconds"),
    ],
)
def test_numbers_that_are_none_are_told_in_one_line(words, message, capsys):
    with pytest.raises(SystemExit) as stop:
        arguments(words)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("name", "signs"), [("a b", "a blank"), ("50%", "%"), ("a#b:$c", "# : $")])
def test_a_folder_that_a_server_could_not_work_in_is_refused(go, tmp_path, name, signs):
    with pytest.raises(BenchError) as error:
        go("--stack", "one", to=name)
    said = f"not every server can work in a folder whose name has {signs}; use another"
    assert str(error.value) == f"{tmp_path / name}: {said}"
    assert not (tmp_path / name).exists()


def test_nothing_is_brought_up_in_such_a_folder(tmp_path):
    with (
        pytest.raises(BenchError, match="has a blank; use another"),
        deployment.deployed(compose.must_compose("gunicorn"), run_dir=tmp_path / "a b"),
    ):
        pass
    assert not (tmp_path / "a b").exists()


def test_a_folder_that_holds_a_run_is_not_written_over(go, tmp_path):
    Folder(tmp_path / "run").create()
    (tmp_path / "run" / "run.json").write_text("{}")
    with pytest.raises(BenchError, match="already holds a run; continue it with --resume"):
        go("--stack", "one")


def resume(folder, *words):
    return run.main(arguments(["--resume", str(folder), *words]), FakeHost())


def test_what_fails_before_the_first_record_leaves_no_folder(go, tmp_path, monkeypatch):
    def programs(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(FakeHost, "programs", programs)
    with pytest.raises(KeyboardInterrupt):
        go("--stack", "one")
    assert not (tmp_path / "run").exists()


@pytest.mark.servers
def test_a_run_under_way_is_left_alone(unfinished):
    folder = unfinished()
    with Folder(folder).locked(), pytest.raises(BenchError, match="a run is under way in it") as error:
        resume(folder)
    assert "\n" not in str(error.value)


def test_resume_of_what_is_no_run(tmp_path):
    with pytest.raises(BenchError, match=r"not a run, it has no run\.json"):
        resume(tmp_path)


@pytest.mark.parametrize(
    "words", [["--stack", "one"], ["--rounds", "2"], ["--to", "x"], ["--warmup", "0"], ["--set", "a=b"]]
)
def test_resume_takes_its_plan_from_the_folder(tmp_path, words):
    with pytest.raises(BenchError, match=f"--resume takes its plan from {tmp_path}; leave out {words[0]}"):
        resume(tmp_path, *words)


@pytest.fixture
def unfinished(tmp_path, go, host):
    """A run that has measured nothing yet, of a database named in this way."""

    def made(*words):
        go("--stack", "one", *words)
        path = tmp_path / "run" / "run.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "finished_at": None}))
        return tmp_path / "run"

    return made


@pytest.mark.servers
def test_resume_needs_the_url_that_is_not_kept(unfinished):
    folder = unfinished("--database", "postgresql://me:secret@db/site")
    assert "secret" not in "".join(path.read_text() for path in folder.glob("*.json*"))
    with pytest.raises(BenchError, match="its database was named by URL, which is not kept; give --database"):
        resume(folder)
    with pytest.raises(BenchError, match="it measures another database, postgresql; give its URL"):
        resume(folder, "--database", "sqlite")
    with pytest.raises(BenchError, match="it measures another database, postgresql; give its URL"):
        resume(folder, "--database", "postgresql")
    assert resume(folder, "--database", "postgresql://me:secret@db/site") == 0


@pytest.mark.servers
@pytest.mark.parametrize(("rows", "refused"), [((1240, 7), False), ((5000, 7), True), ((1234, 8), True)])
def test_a_run_does_not_go_on_with_other_rows(unfinished, monkeypatch, rows, refused):
    folder = unfinished("--rounds", "2")
    path = folder / "trials.jsonl"
    path.write_text(path.read_text().splitlines(keepends=True)[0])
    monkeypatch.setattr(FakeHost, "rows", lambda *_: rows)
    if refused:
        with pytest.raises(BenchError, match="this is another database: "):
            resume(folder)
    else:
        assert resume(folder) == 0
    assert len(read_run(folder).trials) == (1 if refused else 2)


@pytest.mark.servers
def test_resume_on_another_database_is_refused(unfinished):
    folder = unfinished()
    with pytest.raises(BenchError, match="it measures another database, sqlite; leave out --database"):
        resume(folder, "--database", "sqlite:////tmp/other.sqlite3")


def test_a_password_in_the_command_line_is_not_recorded():
    words = ["--database", "postgresql://me:s3cr3t@db/site", "--to", "/tmp/a@b"]
    assert [run.without_password(word) for word in words] == [
        "--database",
        "postgresql://...@db/site",
        "--to",
        "/tmp/a@b",
    ]


def test_the_defaults_are_those_of_the_contract():
    args = arguments([])
    assert vars(args) == vars(argparse.Namespace(**dict.fromkeys(run.PLAN_ARGUMENTS), database=None, resume=None)) | {
        "env": [],
        "set": [],
        "verify": "quick",
    }
    assert (run.LEVEL, run.ROUNDS, run.DURATION_S, run.LONGEST_WARMUP_S) == (16, 5, 10, 2.0)


# ------------------------------------------------------------------------------------- the machine


def test_the_machine_is_described_without_its_name():
    about = machine.environment({"server": "1.0"}, records.LoadTool("wrk", "4.1.0", False))
    assert about.cores >= 1 and about.memory_bytes > 0
    assert about.kernel.startswith(("Linux ", "Darwin "))
    assert about.hostname is None
    assert about.packages["Django"].count(".") >= 1
    assert "hostname" in records.describe(records.Environment)


def test_a_folder_that_is_no_checkout_has_no_commit(tmp_path):
    assert machine.git_state(tmp_path) == (None, None)


def test_a_checkout_with_changes_says_so(tmp_path):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.com"]
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / "file").write_text("1")
    subprocess.run([*git, "add", "file"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "One"], check=True)
    commit, dirty = machine.git_state(tmp_path)
    assert len(commit) == 40 and dirty is False
    (tmp_path / "file").write_text("2")
    assert machine.git_state(tmp_path) == (commit, True)


def test_a_processor_that_does_not_say_its_name_has_none(tmp_path):
    (tmp_path / "cpuinfo").write_text("processor : 0\n")
    assert machine.cpu_model(tmp_path / "cpuinfo") is None
