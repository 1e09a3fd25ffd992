"""One trial: its records if all is well, and failures without figures for any error."""

from __future__ import annotations

import threading

import pytest

from bench import programs
from bench.errors import GlobalFault
from bench.measure import load
from bench.measure.records.folder import Folder
from bench.measure.records.records import CaseRecord
from bench.measure.run import local
from bench.measure.run.local import HereLoad
from bench.measure.run.plan import Deployment, Measurement
from bench.measure.run.trial import LoadSettings, measure
from tests.bench.measure.load.load_target import target
from tests.bench.measure.records.run_data import ENVIRONMENT, INFO
from tests.bench.measure.run.fake_sites import fake_case, fake_running
from tests.cases import kit

CASE = CaseRecord("one~none~home~unlimited~sqlite", "one", "none", "home", "unlimited", "sqlite")
TOOL, PROGRAM = load.choose([("/", "/a")], programs.find)

pytestmark = pytest.mark.servers


@pytest.fixture
def folder(tmp_path):
    created = Folder(tmp_path / "run")
    created.create(INFO, ENVIRONMENT)
    return created


@pytest.fixture
def running(folder, monkeypatch):
    monkeypatch.setattr(local, "COME_BACK_S", 0.1)
    with target(pause_s=0.01) as site:
        logs = folder.raw / "one~none~r1" / "logs"
        logs.mkdir(parents=True)
        (logs / "server.log").write_text("something happened\n")
        (logs / "silent.log").touch()
        yield fake_running(
            fake_case("one", "none"),
            url=site.url,
            logs=logs,
            site=site,
            oom_kills=iter([1, 3]).__next__,
            is_healthy=lambda: not site.broken.is_set(),
        )


def measured(running, folder, *paths, duration_s=1, level=2, tool=TOOL, program=str(PROGRAM), mode="closed"):
    how = LoadSettings(tool, program, duration_s, threads=1, mode=mode)
    item = Measurement(CASE, level, 1, Deployment(fake_case(CASE.stack, CASE.layer), 1))
    directory = folder.raw / item.key
    directory.mkdir(parents=True, exist_ok=True)
    return measure(item, paths or ("/",), kit(), HereLoad(running, how, directory), folder)


def test_a_good_trial_has_every_figure(running, folder):
    record = measured(running, folder, "/", "/a")
    assert (record.status, record.reason, record.evidence.log) == ("ok", None, None)
    assert (record.trial_id, record.tool) == ("one~none~home~unlimited~sqlite~2~r1", TOOL.name)
    figures, costs, condition = record.figures, record.costs, record.condition
    assert figures.requests_total > 0 and figures.requests_per_second > 0 and figures.bytes_per_second > 0
    assert figures.latency_max_ms > 0
    assert (record.errors.errors_connect, record.errors.errors_read, record.errors.responses_not_2xx) == (0, 0, 0)
    assert record.condition.time_to_ready_s == 0.5
    assert costs.cpu_seconds["server"] > 0
    assert costs.processes["server"] >= 1
    assert len(costs.memory["server"]) >= 2 or costs.memory["server"] == ()
    assert condition.memory_idle_bytes == {"server": 4096}
    assert record.condition.oom_kills == 2, "what was killed in this trial"
    assert record.condition.came_back is True
    # The site runs in this very process here.
    assert record.condition.observer_share > 0
    assert running.site.requests["/a"] > 2, "visited before and after the load, too"
    raw = {path.name: path.stat().st_size for path in (folder.raw / record.trial_id).iterdir()}
    assert {"load.out", "load.err", "load.command", "warmup.out", "warmup.err"} <= raw.keys() and raw["load.out"]


def assert_failed(record, reason):
    assert record.status == "failed"
    assert reason in record.reason
    assert (record.figures, record.costs) == (None, None)


@pytest.mark.parametrize(
    ("paths", "reason"),
    [
        (("/", "/503"), "before the load: GET /503: status 503, not 200"),
        # A redirect is not a right response.
        (("/", "/302"), "before the load: GET /302: status 302, not 200"),
        ((), "before the load: GET /: [Errno 111] Connection refused"),
    ],
)
def test_what_is_not_there_is_found_before_the_load(running, folder, paths, reason):
    if not paths:
        running.url = "http://127.0.0.1:1"
    record = measured(running, folder, *paths)
    assert_failed(record, reason)
    assert record.evidence.log == "raw/one~none~r1/logs/server.log"
    assert (record.condition.oom_kills, record.condition.came_back) == (None, None), "it did not come to a load"
    assert running.site.requests["/"] == len(paths) // 2


def test_wrong_responses_during_the_load_are_a_failure_with_counts(running, folder):
    timer = threading.Timer(0.5, running.site.broken.set)
    timer.start()
    record = measured(running, folder)
    timer.join()
    assert_failed(record, f"{TOOL.name}: ")
    assert "responses with a status outside 200 to 299" in record.reason
    assert record.errors.responses_not_2xx > 0
    assert record.condition.time_to_ready_s == 0.5


def test_responses_that_go_wrong_at_the_end_are_a_failure(running, folder, monkeypatch):
    timed = HereLoad.timed

    def breaking(*args):
        outcome = timed(*args)
        running.site.broken.set()
        return outcome

    monkeypatch.setattr(HereLoad, "timed", breaking)
    assert_failed(measured(running, folder), "after the load: GET /: status 503, not 200")


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("/bin/false", "false exited with status 1; it said: nothing"),
        ("/bin/true", f"{TOOL.name} printed no figures; it said: nothing"),
    ],
)
def test_a_load_tool_that_fails_or_says_nothing_is_a_failure_with_its_log(running, folder, program, reason):
    record = measured(running, folder, program=program)
    assert_failed(record, reason)
    assert record.evidence.log == f"raw/{record.trial_id}/load.err"
    assert (record.condition.oom_kills, record.condition.came_back) == (2, True), "what the load left behind"


def test_a_load_tool_that_is_gone_would_fail_every_trial(running, folder):
    with pytest.raises(GlobalFault, match="the load tool cannot be started: /no/such/tool: No such file"):
        measured(running, folder, program="/no/such/tool")
