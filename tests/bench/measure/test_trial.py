"""One trial: what is recorded when all is well, and that whatever goes wrong is a failure without figures."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from types import SimpleNamespace

import pytest

from bench import load, programs
from bench.errors import GlobalFault
from bench.figures import histogram
from bench.interrupt import Interrupts, Stopped
from bench.measure import resource_usage, trial, worker_share
from bench.measure.plan import Measurement
from bench.measure.trial import Load, measure
from bench.results import trials
from bench.results.folder import Folder, read_lines
from bench.results.records import Case
from tests.bench.load.load_target import target
from tests.cases import kit

CASE = Case("one~none~home~unlimited~sqlite", "one", "none", "home", "unlimited", "sqlite")
TOOL, PROGRAM = load.choose([("/", "/a")], programs.find)

pytestmark = pytest.mark.servers


@pytest.fixture
def folder(tmp_path):
    made = Folder(tmp_path / "run")
    made.create()
    return made


@pytest.fixture
def running(folder, monkeypatch):
    monkeypatch.setattr(resource_usage, "COME_BACK_S", 0.1)
    with target(pause_s=0.01) as site:
        logs = folder.raw / "one~none~r1" / "logs"
        logs.mkdir(parents=True)
        (logs / "server.log").write_text("something happened\n")
        (logs / "silent.log").touch()
        yield SimpleNamespace(
            case=SimpleNamespace(project=kit()),
            url=site.url,
            ready_s=0.5,
            pids={"server": os.getpid()},
            servers=("server",),
            logs=logs,
            site=site,
            # Clients of tests before this one may have left some in this process.
            unclosed=resource_usage.close_wait({"server": os.getpid()})["server"],
            memory_idle_bytes={"server": 4096},
            oom_kills=iter([1, 3]).__next__,
            env={},
            answers=lambda: not site.broken.is_set(),
        )


def made(running, folder, *paths, duration_s=1, level=2, tool=TOOL, program=str(PROGRAM)):
    how = Load(tool, program, duration_s, threads=1)
    return measure(Measurement(CASE, level, 1), paths or ("/",), running, how, folder)


def test_a_good_trial_has_every_figure(running, folder):
    record = made(running, folder, "/", "/a")
    assert (record.status, record.reason, record.log) == ("ok", None, None)
    assert (record.trial_id, record.tool) == ("one~none~home~unlimited~sqlite~2~r1", TOOL.name)
    assert record.requests_total > 0 and record.requests_per_second > 0 and record.bytes_per_second > 0
    assert 0 < record.latency_p50_ms <= record.latency_max_ms
    assert histogram.merged([record.histogram]).total_count == record.requests_total
    assert (record.errors_connect, record.errors_read, record.responses_not_2xx) == (0, 0, 0)
    assert record.time_to_ready_s == 0.5
    assert record.cpu_seconds["server"] > 0
    assert record.processes["server"] >= 1
    assert len(record.memory["server"]) >= 2 or record.memory["server"] == ()
    assert record.memory_idle_bytes == {"server": 4096}
    assert record.close_wait["server"] <= running.unclosed
    assert record.oom_kills == 2, "what was killed in this trial"
    assert record.came_back is True
    # The site runs in this very process here.
    assert record.observer_share > 0


def test_the_raw_output_of_warm_up_and_load_is_saved(running, folder):
    record = made(running, folder)
    raw = folder.raw / record.trial_id
    assert {"load.out", "load.err", "load.command", "warmup.out", "warmup.err"} <= {path.name for path in raw.iterdir()}
    assert (raw / "load.out").stat().st_size > 0


def test_the_record_can_be_written_and_read_back(running, folder):
    record = made(running, folder)
    folder.append_trial(record)
    assert list(read_lines(trials.Trial, folder.directory / "trials.jsonl")) == [record]


def test_a_failed_trial_tells_what_the_load_left_behind(running, folder):
    record = made(running, folder, "/503")
    assert (record.status, record.oom_kills, record.came_back) == ("failed", None, None), "it did not come to a load"
    running.oom_kills = iter([1, 3]).__next__
    record = made(running, folder, program="/bin/false")
    assert (record.status, record.memory, record.cpu_seconds) == ("failed", None, None)
    assert (record.oom_kills, record.came_back) == (2, True)
    assert record.close_wait["server"] <= running.unclosed


def test_every_address_is_visited_before_and_after(running, folder):
    made(running, folder, "/only-visited-and-loaded", "/")
    assert running.site.requests["/only-visited-and-loaded"] > 2


def assert_failed(record, reason):
    assert record.status == "failed"
    assert reason in record.reason
    assert [name for name in trials.FIGURES if getattr(record, name) is not None] == []


def test_an_address_that_is_not_there_is_found_before_the_load(running, folder):
    record = made(running, folder, "/", "/503")
    assert_failed(record, "before the load: GET /503: status 503, not 200")
    assert record.log == "raw/one~none~r1/logs/server.log"
    assert running.site.requests["/"] == 1


def test_a_redirect_is_not_an_answer(running, folder):
    assert_failed(made(running, folder, "/302"), "before the load: GET /302: status 302, not 200")


def test_a_site_that_is_not_there(running, folder):
    running.url = "http://127.0.0.1:1"
    assert_failed(made(running, folder), "before the load: GET /: [Errno 111] Connection refused")


def test_wrong_answers_during_the_load_are_a_failure_with_counts(running, folder):
    timer = threading.Timer(0.5, running.site.broken.set)
    timer.start()
    record = made(running, folder)
    timer.join()
    assert_failed(record, f"{TOOL.name}: ")
    assert "answers with a status outside 200 to 299" in record.reason
    assert record.responses_not_2xx > 0
    assert record.time_to_ready_s == 0.5


def test_answers_that_go_wrong_at_the_end_are_a_failure(running, folder, monkeypatch):
    timed = trial._timed

    def breaking(*args):
        outcome = timed(*args)
        running.site.broken.set()
        return outcome

    monkeypatch.setattr(trial, "_timed", breaking)
    assert_failed(made(running, folder), "after the load: GET /: status 503, not 200")


def test_a_load_tool_that_fails_is_a_failure_with_its_log(running, folder):
    record = made(running, folder, program="/bin/false")
    assert_failed(record, "false exited with status 1; it said: nothing")
    assert record.log == f"raw/{record.trial_id}/load.err"


def test_a_load_tool_that_says_nothing_is_a_failure(running, folder):
    assert_failed(made(running, folder, program="/bin/true"), f"{TOOL.name} printed no figures; it said: nothing")


def test_a_load_tool_that_is_gone_would_fail_every_trial(running, folder):
    with pytest.raises(GlobalFault, match="the load tool cannot be started: /no/such/tool: No such file"):
        made(running, folder, program="/no/such/tool")


@pytest.mark.parametrize("mode, connections", [("closed", 3), ("open", 5)])
def test_as_many_ask_for_the_worker_as_the_load_has_connections(running, folder, monkeypatch, mode, connections):
    asked = []
    monkeypatch.setattr(trial, "requests_per_worker", lambda url, connections, keep_alive: asked.append(connections))
    tool, program = load.choose([("/",)], programs.find, mode=mode)
    how = Load(tool, str(program), 1, threads=1, mode=mode)
    assert measure(Measurement(CASE, 3 if mode == "closed" else 5, 1), ("/",), running, how, folder).status == "ok"
    assert asked == [connections]


def test_a_signal_while_workers_are_looked_for_stops_the_trial(running, folder, monkeypatch):
    def ask(*_):
        os.kill(os.getpid(), signal.SIGINT)
        return Counter()

    monkeypatch.setattr(worker_share, "_ask", ask)
    with pytest.raises(Stopped), Interrupts():
        made(running, folder)
