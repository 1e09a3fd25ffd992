"""What each fault does to a deployment, without servers."""

from __future__ import annotations

import signal
from types import SimpleNamespace

import pytest

from bench.errors import BenchError, DeploymentError
from bench.faults import kinds, scene
from bench.faults.kinds import FAULTS, killed, replaced
from bench.faults.scene import CannotFault, Scene


class FakeVersions:
    """Releases that are only counted."""

    word, served = "release-1", "1"

    def __init__(self, log):
        self.log = log

    def new(self, broken=False):
        self.log.append("new broken" if broken else "new")
        return "2"

    def switch(self, folder):
        self.log.append(f"switch to {folder}")
        self.served, self.word = folder, f"release-{folder}"


class FakeChain:
    """Servers that say what was done to them."""

    def __init__(self, log):
        self.log, self.done, self.reloads = log, {"app": "reloaded by SIGHUP"}, True

    def reload(self, changed, only):
        self.log.append(f"reload {only}".strip())
        return self.done

    def ask_application(self):
        self.log.append("ask")
        return self.reloads

    def restart(self, name):
        self.log.append(f"restart {name}")
        raise DeploymentError("it does not start")


@pytest.fixture
def stage(monkeypatch):
    """A scene on a fake deployment; everything done is logged."""
    log = []
    servers = (SimpleNamespace(name="app"), SimpleNamespace(name="front"))
    worker = SimpleNamespace(give_tree=lambda folder: None)
    case = SimpleNamespace(
        project=SimpleNamespace(worker=lambda *folder: worker),
        servers=servers,
        caches="pages",
        services=(SimpleNamespace(name="cache"),),
    )
    running = SimpleNamespace(
        case=case,
        chain=FakeChain(log),
        env={"DATABASE_URL": "sqlite://"},
        pids={"app": 11, "front": 12, "cache": 13, "db": 14},
        url="http://127.0.0.1:1",
        services=SimpleNamespace(database="db", wait_serving=lambda name: log.append(f"{name} serves")),
    )
    supervisor = SimpleNamespace(deaths=[], wait=lambda until, seconds: (log.append("wait"), until())[1])
    made = Scene(running, supervisor, FakeVersions(log), SimpleNamespace())
    monkeypatch.setattr(scene.commands, "manage", lambda project, words, *_, **__: log.append(words[0]))
    monkeypatch.setattr(replaced.render, "server_files", lambda server, case: {f"{server.name}.conf": None})

    def kill(pid, number):
        assert number == signal.SIGKILL
        log.append(f"kill {pid}")
        name = next((name for name, its in running.pids.items() if its == pid), "")
        supervisor.deaths.append(SimpleNamespace(name=name, again_s=1.0))

    monkeypatch.setattr(scene.os, "kill", kill)
    monkeypatch.setattr(killed.time, "sleep", lambda seconds: log.append(f"sleep {seconds:g}"))
    return SimpleNamespace(scene=made, log=log, running=running)


def make(stage, name):
    """Go through the whole fault; what was done before the visitors came is followed by `|`."""
    steps = FAULTS[name].run(stage.scene)
    next(steps)
    stage.log.append("|")
    for _ in steps:
        pass
    assert stage.scene.over >= stage.scene.struck > 0
    return stage.log


def test_a_new_configuration_is_reloaded(stage):
    assert make(stage, "configuration") == ["|", "reload"]
    assert (stage.scene.operator, stage.scene.servers) == ("reload", {"app": "reloaded by SIGHUP"})


def test_what_cannot_reload_is_restarted_by_the_operator(stage):
    stage.running.chain.done = {"app": "restarted", "front": "reloaded by SIGHUP"}
    make(stage, "configuration")
    assert stage.scene.operator == "restart"


@pytest.mark.parametrize("name", ["application", "cache-after-deploy"])
def test_a_new_version_is_switched_to_reloaded_and_invalidates_the_cache(stage, name):
    assert make(stage, name) == ["new", "|", "switch to 2", "reload app", "invalidatepages"]
    assert stage.scene.deployed >= stage.scene.struck


def test_without_cached_pages_there_is_nothing_to_invalidate(stage):
    stage.running.case.caches = "nothing"
    assert "invalidatepages" not in make(stage, "application")


def test_a_broken_version_is_rolled_back(stage):
    assert make(stage, "broken-application") == ["new broken", "|", "switch to 2", "ask", "wait", "switch to 1", "ask"]
    assert stage.scene.operator == "roll back, reload"
    assert stage.scene.versions.word == "release-1"


def test_a_server_that_cannot_reload_is_restarted_with_the_broken_version(stage):
    stage.running.chain.reloads = False
    assert make(stage, "broken-application").count("restart app") == 2


def test_a_certificate_that_is_not_taken_over_is_noticed(stage, monkeypatch):
    served = iter(["old", "old"])
    monkeypatch.setattr(replaced, "_served_certificate", lambda scene: next(served))
    monkeypatch.setattr(replaced, "make_certificate", lambda folder: stage.log.append("certificate"))
    stage.running.layout = SimpleNamespace(tls="", run_dir="")
    assert make(stage, "certificate") == ["|", "certificate", "reload front"]
    assert stage.scene.wrong == ["front still serves the old certificate"]


@pytest.mark.parametrize(
    ("name", "done"),
    [
        ("application-server", ["|", "kill 11", "wait"]),
        ("front-server", ["|", "kill 12", "wait"]),
        ("caching-service", ["|", "kill 13", "wait"]),
        ("database", ["|", "kill 14", "sleep 5", "wait", "db serves"]),
    ],
)
def test_a_main_process_is_killed_and_started_again(stage, name, done):
    assert make(stage, name) == done
    assert list(stage.scene.servers.values()) == ["started again"]


def test_what_is_not_started_again_is_an_error(stage, monkeypatch):
    monkeypatch.setattr(scene.os, "kill", lambda *_: None)
    with pytest.raises(BenchError, match="app was not started again within 15 s"):
        make(stage, "application-server")


def test_one_worker_is_killed(stage, monkeypatch):
    monkeypatch.setattr(killed.http, "get", lambda url, path: b'{"process_id": 99}')
    assert make(stage, "worker") == ["|", "kill 99"]


def test_a_server_without_workers_has_none_to_kill(stage, monkeypatch):
    monkeypatch.setattr(killed.http, "get", lambda url, path: b'{"process_id": 11}')
    with pytest.raises(CannotFault, match="no worker processes under a master"):
        make(stage, "worker")


def test_a_database_of_the_user_is_not_killed(stage):
    stage.running.services.database = None
    with pytest.raises(CannotFault, match="give --database postgresql"):
        make(stage, "database")


def test_what_does_not_fit_says_why(stage):
    case = stage.running.case
    assert FAULTS["front-server"].misfit(case) == FAULTS["caching-service"].misfit(case) == ""
    case.servers, case.services, case.caches = case.servers[:1], (), "parts"
    assert FAULTS["front-server"].misfit(case) == "the application server is itself in front"
    assert FAULTS["caching-service"].misfit(case) == "no layer here uses a caching service"
    assert FAULTS["cache-after-deploy"].misfit(case) == "no layer here caches pages"


def test_faults_are_chosen_by_name_and_by_group():
    assert {item.group for item in kinds.named(("killed",))} == {"killed"}
    assert [item.name for item in kinds.named(("worker", "application"))] == ["application", "worker"]
    assert kinds.named(()) == list(FAULTS.values())
