"""Runs: measurements, their order, records, and failures of one case or of the run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench import programs
from bench.errors import BenchError
from bench.measure.records.folder import read_run
from bench.measure.stats import table
from bench.serve.deployment import survey
from bench.serve.machine.processes import MachineLoad
from bench.serve.project import refs
from bench.serve.project.opened import UnderTest
from bench.serve.project.refs import Ref
from bench.verify.outcome import Skip
from tests.bench.measure.records.test_schema import problems
from tests.skips import needs


@pytest.mark.servers
def test_a_run_records_what_was_requested_and_what_was_measured(go, sites, capsys):
    sites.misfits["two", "files"] = "no server of its chain serves files"
    words = ["--stack", "one", "--stack", "two", "--layer", "files", "--rounds", "2"]
    status, recorded = go(*words)
    assert status == 0
    assert [trial.status for trial in recorded.trials] == ["ok"] * 6
    case_ids = {case.case_id for case in recorded.info.cases}
    assert case_ids == {
        "one~none~home~unlimited~sqlite",
        "one~files~home~unlimited~sqlite",
        "two~none~home~unlimited~sqlite",
    }
    assert recorded.info.cases[0].notes == ("one is small",)
    assert recorded.info.notes[-1] == "the machine is odd"
    assert "one is small" not in recorded.info.notes
    assert recorded.info.skips == (Skip("two", "files", None, "no server of its chain serves files"),)
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
    output = capsys.readouterr().out
    assert "skipped: two with layer files: no server of its chain serves files" in output
    assert "round 2 of 2, case 3 of 3: " in output
    assert "time left ~" in output
    assert f"results in {recorded.directory}; next: python -m bench report {recorded.directory}\n" in output
    assert output.splitlines()[-1].startswith("Next: python -m bench ")


@pytest.mark.servers
def test_without_a_web_server_a_run_says_so_before_its_verdict(go, monkeypatch, capsys):
    monkeypatch.setattr(survey, "missing_web_server", lambda: "front: `apt-get install front` installs it")
    _, recorded = go("--stack", "one")
    assert recorded.environment.missing_web_server == "front: `apt-get install front` installs it"
    lines = capsys.readouterr().out.splitlines()
    advice = next(number for number, line in enumerate(lines) if line.startswith("No usable web server is installed"))
    assert lines[advice].endswith("such as front: `apt-get install front` installs it.")
    assert "one" in lines[advice + 1]


@pytest.mark.servers
def test_a_variant_is_verified_once_always_taken_down_and_brought_up_where_every_server_can_work(go, sites):
    _, recorded = go("--stack", "one@processes=2,threads=3", "--rounds", "2")
    name = "one@processes=2,threads=3"
    assert [(trial.stack, trial.status) for trial in recorded.trials] == [(name, "ok")] * 2
    once = [f"{done} {name} none" for done in ("up", "verify", "empty", "down")]
    assert sites.log == [*once, once[0], once[-1]]
    assert (recorded.directory / "raw" / "one@processes=2+threads=3~none~r1" / "logs" / "server.log").exists()


@pytest.mark.servers
def test_the_urls_of_the_session_are_looked_up_once_and_recorded(go):
    _, recorded = go("--stack", "one", "--workload", "session")
    addresses = json.loads((recorded.directory / "workloads.json").read_text())
    assert set(addresses) == {"home", "session"}
    assert addresses["session"][:4] == ["/", "/static/site.1.css", "/static/site.2.js", "/static/logo.3.svg"]
    assert "/posts/page/38/" in addresses["session"]


@pytest.mark.servers
def test_only_a_workload_that_leads_nowhere_fails(go, sites):
    sites.bare.add("one")
    status, recorded = go("--stack", "one", "--workload", "session")
    assert status == 1
    assert {trial.workload: trial.reason for trial in recorded.trials} == {
        "home": None,
        "session": "workload session, step 13: /posts/ links to nothing below /posts/",
    }


@pytest.mark.servers
def test_wrong_responses_are_never_measured_and_only_what_does_not_come_up_fails(go, sites, capsys):
    sites.wrong.add("two")
    sites.refuses.add("three")
    sites.unreadable["four"] = "layer.toml: unknown key"
    stacks = ("one", "two", "three", "four")
    status, recorded = go(*(word for name in stacks for word in ("--stack", name)), "--rounds", "2")
    assert (status, recorded.info.finished_at is None) == (1, False)
    results = {name: set() for name in stacks}
    for trial in recorded.trials:
        results[trial.stack].add((trial.status, trial.reason, trial.evidence.log))
    wrong = "not measured, it gives wrong responses: 1 check failed: content"
    tired = "server exited with status 1: three is tired"
    logs = {name: [f"raw/{name}~none~r{number}/logs/server.log" for number in (1, 2)] for name in stacks}
    assert results == {
        "one": {("ok", None, None)},
        "two": {("failed", wrong, "verify.jsonl")},
        "three": {("failed", tired, log) for log in logs["three"]},
        "four": {("failed", "layer.toml: unknown key", log) for log in logs["four"]},
    }
    assert {it.figures for it in recorded.trials if it.status == "failed"} == {None}
    assert problems(recorded.directory) == [], "it keeps to the schema"
    assert (recorded.directory / "raw" / "three~none~r1" / "logs" / "server.log").read_text() == "it began\n"
    # In the second round it is known to be wrong, and is not even brought up.
    assert sites.log.count("up two none") == 1
    output = capsys.readouterr().out
    assert f"failed: {tired} (see raw/three~none~r1/logs/server.log)" in output
    assert "6 of 8 trials failed" in output


@pytest.mark.servers
def test_a_server_that_dies_in_one_trial_does_not_spoil_the_next(go, sites):
    # The addresses are looked up on `one`, which is well.
    sites.dies["two"] = 1
    go("--stack", "one", to="first")
    status, recorded = go("--stack", "two", "--workload", "login")
    assert status == 1
    assert [trial.status for trial in recorded.trials] == ["failed", "ok"]
    # The order of workloads is shuffled.
    address = {"home": "/", "login": "/login/"}[recorded.trials[0].workload]
    why = f"before the load: GET {address}: status 503, not 200; server was killed by SIGKILL"
    assert recorded.trials[0].reason == why
    assert sites.log.count("up two none") == 2


# ------------------------------------------------------------------------------------- until decided


@pytest.mark.servers
def test_a_run_until_decided_ends_when_it_is_and_says_so(go, capsys):
    status, recorded = go("--stack", "one", "--until-decided", "--rounds", "9")
    assert (status, recorded.info.ended_by, recorded.missing) == (0, "decided", 0)
    assert [trial.round for trial in recorded.trials] == [1, 2]
    output = capsys.readouterr().out
    assert "1 case, 1 trial in the next round, load by " in output
    assert "rounds: until one case leads or the rest tie, at most 9\n" in output
    assert "round 2 of at most 9, case 1 of 1: " in output
    assert "after round 1: no case dropped; 1 trial in the next round\n" in output
    assert "after round 2: no case dropped; no rounds left\n" in output
    with pytest.raises(BenchError, match="the run is complete; next: python -m bench report"):
        go("--resume", str(recorded.directory))


@pytest.mark.servers
def test_a_dropped_case_is_recorded_with_its_round_and_reason(go, monkeypatch):
    needs("wrk")
    monkeypatch.setattr(table, "MIN_LEFT", 1)
    monkeypatch.setattr(table, "ASSUMED_NOISE", 1e-9)
    _, recorded = go("--stack", "one", "--stack", "two", "--until-decided", "--rounds", "2", "--margin", "0")
    (dropped,) = recorded.info.dropped
    assert (dropped.level, dropped.round, dropped.reason) == (16, 1, "it cannot be the best any more")
    assert [trial.case_id for trial in recorded.trials].count(dropped.case_id) == 1
    assert len(recorded.trials) == 3


# ------------------------------------------------------------------------------------- open loop, guards, faults


@pytest.mark.servers
def test_an_open_loop_run_has_rates_for_levels(go, capsys):
    status, recorded = go("--stack", "one", "--rate", "20", "--rate", "40")
    assert status == 0
    assert (recorded.info.plan.mode, recorded.info.plan.levels) == ("open", (20, 40))
    assert recorded.environment.load_tool.name == "openloop"
    assert sorted(trial.requests for trial in recorded.trials) == [20, 40]
    for trial in recorded.trials:
        assert (trial.level_connections, trial.rate_requested, trial.level) == (None, trial.requests, trial.level)
        assert (trial.figures.requests_dropped, trial.errors.statuses) == (0, {"200": trial.level})
        # Too few requests for a 99th percentile.
        assert trial.figures.latency_p50_ms is not None and trial.figures.latency_p99_ms is None
    assert "home, 40 requests/s due: " in capsys.readouterr().out


@pytest.mark.servers
def test_a_run_without_any_load_tool_of_the_system(go, monkeypatch):
    """With only pip's packages, the built-in load tool makes the closed loop, and the run reports this."""
    monkeypatch.setattr(
        programs, "find", lambda names, search=(), venvs=(): Path(sys.executable) if "python3" in names else None
    )
    status, recorded = go("--stack", "one", "--connections", "3")
    assert status == 0
    assert (recorded.environment.load_tool.name, recorded.environment.load_tool.fallback) == ("closedloop", True)
    assert "load made by closedloop, the load tool of this project" in "".join(recorded.info.notes)
    for trial in recorded.trials:
        assert (trial.tool, trial.rate_requested) == ("closedloop", None)
        assert trial.figures.thirds and trial.errors.statuses == {"200": trial.requests}


@pytest.mark.servers
def test_a_discarded_trial_keeps_its_figures_and_says_why(go, capsys):
    # Every load tool uses some CPU time.
    status, recorded = go("--stack", "one", "--guard", "bodies=0", "--guard", "tool=0")
    (trial,) = recorded.trials
    assert (status, trial.status) == (1, "discarded")
    assert trial.reason.startswith("tool: the load tool used ")
    assert trial.throughput > 0
    assert trial.evidence.guards["bodies"] == "ok"
    assert recorded.info.plan.guards == {"bodies": 0.0, "tool": 0.0}
    output = capsys.readouterr().out
    assert "discarded: tool: the load tool used" in output
    assert "1 of 1 trials discarded as unreliable" in output


@pytest.mark.servers
def test_discarded_trials_are_no_verdict_on_a_commit(go, monkeypatch):
    monkeypatch.setattr(refs, "choose", lambda folder, names: tuple(Ref(name, "") for name in names))
    monkeypatch.setattr(refs, "notes", lambda *_: [])
    monkeypatch.setattr(UnderTest, "use_refs", lambda *_: None)
    words = ("--stack", "one", "--ref", "main", "--ref", "new", "--guard", "tool=0")
    assert go(*words)[0] == 1
    with pytest.raises(
        BenchError, match=r"^--fail-if: no verdict on one none home \d+: new: .*; tool: .*resuming would"
    ):
        go(*words, "--fail-if", "slower", to="other")


@pytest.mark.servers
def test_a_trial_that_other_processes_disturb_is_made_again(go, capsys, monkeypatch, tmp_path):
    shares = iter([0.9, 0.1])
    monkeypatch.setattr("bench.measure.run.local.Interference.share", lambda *_: next(shares))
    status, recorded = go("--stack", "one", "--guard", "interference=0.25", "--keep-going")
    assert (status, [trial.status for trial in recorded.trials]) == (0, ["discarded", "ok"])
    assert len({trial.trial_id for trial in recorded.trials}) == 1
    output = capsys.readouterr().out
    assert "interference: other processes took 90% of the machine: the trial is repeated" in output
    assert "trials discarded" not in output
    assert (tmp_path / "run" / "raw" / f"{recorded.trials[0].trial_id}~discarded1" / "load.out").exists()


@pytest.mark.servers
def test_a_run_on_a_busy_machine_stops_and_is_resumed(go, sites, capsys, monkeypatch, tmp_path):
    shares = iter([0.9, 0.8, 0.75, 0.1, 0.1])
    monkeypatch.setattr("bench.measure.run.local.Interference.share", lambda *_: next(shares))
    sites.load = MachineLoad(0.7, "other processes take 70% of this machine (chromium, process 12: 60%)")
    folder = tmp_path / "run"
    with pytest.raises(BenchError) as error:
        go("--stack", "one", "--guard", "interference=0.25", "--rounds", "2")
    assert str(error.value) == (
        "stopped: 3 trials in a row were discarded (interference: other processes took 75% of the machine); now other "
        "processes take 70% of this machine (chromium, process 12: 60%); stop those programs and "
        f"resume with: python -m bench run --resume {folder}; on a machine that stays busy a new run with "
        "--guard interference=off --guard drift=off counts such trials"
    )
    assert f"warning: {sites.load.words}; trials beyond 25% are discarded" in capsys.readouterr().out
    assert read_run(folder).info.finished_at is None
    status, recorded = go("--resume", str(folder))
    assert status == 0
    assert [trial.status for trial in recorded.trials] == ["discarded"] * 3 + ["ok"] * 2
    assert recorded.info.finished_at
    assert (folder / "raw" / f"{recorded.trials[0].trial_id}~discarded3" / "load.out").exists()


@pytest.mark.servers
def test_a_page_that_changes_under_load_discards_its_trial(go, sites):
    # The engine of this project sees it itself, and the trial fails.
    needs("wrk")
    sites.changes.add("one")
    _, recorded = go("--stack", "one", "--guard", "bodies=0.05", "--duration", "3")
    assert recorded.trials[0].status == "discarded"
    assert recorded.trials[0].reason.startswith("bodies: GET /: ")
    assert recorded.trials[0].evidence.bodies_checked >= 1


@pytest.mark.servers
@pytest.mark.parametrize("when", ["at the start", "in the middle"])
def test_a_database_that_is_gone_stops_a_run_once_and_it_can_go_on(go, sites, tmp_path, when):
    gone = "the database cannot be used: connection refused"
    if when == "at the start":
        sites.database_gone = gone
    else:
        sites.refuses.add("one")
        sites.gone_after_failure = gone
    with pytest.raises(BenchError) as error:
        go("--stack", "one", "--stack", "two")
    folder = tmp_path / "run"
    assert str(error.value) == (f"stopped: {gone}; fix it and resume with: python -m bench run --resume {folder}")
    assert len([trial for trial in read_run(folder).trials if trial.status == "failed"]) == 0
    sites.database_gone, sites.gone_after_failure = "", ""
    sites.refuses.clear()
    status, recorded = go("--resume", str(folder))
    assert (status, len(recorded.trials)) == (0, 2)


@pytest.mark.servers
def test_logs_and_configurations_are_saved_and_hashed_without_paths_and_ports_and_caches_are_not(go):
    _, first = go("--stack", "one")
    raw = first.directory / "raw" / "one~none~r1"
    assert (raw / "logs" / "server.log").exists() and not (raw / "store").exists()
    assert (first.directory / "configs" / "one~none" / "file").read_text() == "one none"
    _, second = go("--stack", "one", to="again")
    assert first.environment.configs == second.environment.configs
    assert set(first.environment.configs) == {"one~none/file"}
