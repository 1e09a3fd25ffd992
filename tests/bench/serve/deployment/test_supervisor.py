"""An ended program is started again after a second, and every death and start is reported once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench import paths
from bench.errors import DeploymentError
from bench.serve.deployment import supervisor
from bench.serve.deployment.supervisor import Supervisor
from bench.serve.machine import supervise
from bench.serve.machine.supervise import Process
from tests.waiting import until


class Deployed:
    """A deployment of programs that end at once, and are started again as `commands` say."""

    def __init__(self, folder: Path, **commands: list[str]):
        self.folder, self.commands = folder, commands
        self.processes = [self._started(name) for name in commands]

    def _started(self, name: str) -> Process:
        log = self.folder / f"{name}.log"
        try:
            with log.open("ab") as output:
                popen = subprocess.Popen(
                    self.commands[name], stdin=subprocess.DEVNULL, stdout=output, start_new_session=True
                )
        except OSError as error:
            raise DeploymentError(f"{name}: cannot start {self.commands[name][0]}: {error.strerror}", log) from None
        return Process(name, popen, log)

    def start_again(self, name: str) -> None:
        place = [process.name for process in self.processes].index(name)
        self.processes[place] = self._started(name)


SLEEPS = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def deployed(tmp_path):
    deployments = []

    def make(**commands):
        deployments.append(Deployed(tmp_path, **commands))
        return deployments[-1]

    yield make
    for one in deployments:
        supervise.stop(one.processes)


def test_the_second_is_that_of_the_units():
    unit = (paths.DEPLOY / "production" / "one-host" / "server.service.j2").read_text("utf-8")
    assert float(re.search(r"^RestartSec=(\d+)$", unit, re.M)[1]) == supervisor.RESTART_S


def test_what_is_killed_is_started_again_after_its_second(deployed, tmp_path):
    messages = []
    running = deployed(cache=SLEEPS, other=SLEEPS)
    first, other = running.processes
    keeper = Supervisor(running, messages.append)
    keeper.step()
    first.popen.kill()
    assert keeper.wait(lambda: keeper.deaths and keeper.deaths[0].again_s, 10)
    again, same = running.processes
    assert same is other and again.pid != first.pid and again.popen.poll() is None
    assert messages == [
        f"cache was killed by SIGKILL; see {tmp_path / 'cache.log'}; it is started again in 1 s",
        "cache was started again",
    ]
    (death,) = keeper.deaths
    assert death.name == "cache"
    assert death.again_s - death.at_s >= 1


def test_one_that_is_restarted_within_its_second_runs_once(deployed):
    """As when a release that ends its server is rolled back by a restart."""
    running = deployed(server=SLEEPS)
    keeper = Supervisor(running, lambda _: None)
    running.processes[0].popen.kill()
    assert keeper.wait(lambda: keeper.deaths, 10)
    running.start_again("server")
    restarted = running.processes[0]
    keeper.wait(lambda: False, supervisor.RESTART_S + 0.5)
    assert running.processes == [restarted]
    assert keeper.deaths[0].again_s is None


def test_one_that_dies_again_and_again_is_tried_again_and_says_so(deployed, monkeypatch, tmp_path):
    monkeypatch.setattr(supervisor, "RESTART_S", 0)
    messages = []
    keeper = Supervisor(deployed(server=[sys.executable, "-c", "print('no certificate'); exit(3)"]), messages.append)
    assert keeper.wait(lambda: len(keeper.deaths) == 4, 20)
    log = tmp_path / "server.log"
    assert messages[0] == f"server exited with status 3: no certificate; see {log}; it is started again in 0 s"
    assert messages[3] == "server was started again, for the 2nd time"
    assert messages[5] == "server was started again, for the 3rd time"


def test_one_that_cannot_be_executed_any_more_is_tried_again(deployed, monkeypatch, tmp_path):
    monkeypatch.setattr(supervisor, "RESTART_S", 0)
    messages = []
    running = deployed(server=SLEEPS)
    keeper = Supervisor(running, messages.append)
    running.commands["server"] = [str(tmp_path / "gone")]
    running.processes[0].popen.kill()
    assert keeper.wait(lambda: len(keeper.deaths) == 3, 10)
    assert messages[1].startswith("server: cannot start")
    assert "gone: No such file or directory; see " in messages[1]
    running.commands["server"] = SLEEPS
    assert keeper.wait(lambda: messages[-1].startswith("server was started again"), 10)


def test_the_rest_of_its_processes_is_killed_first(deployed, tmp_path):
    """Also a worker in a separate process group, as those of databases are."""
    note = tmp_path / "worker"
    worker = f"import os, pathlib, time; os.setpgid(0, 0); pathlib.Path({str(note)!r}).write_text(str(os.getpid()))"
    master = (
        "import subprocess, sys, time;"
        f"subprocess.Popen([sys.executable, '-c', {worker + '; time.sleep(60)'!r}]); time.sleep(60)"
    )
    running = deployed(server=[sys.executable, "-c", master])
    until(lambda: note.exists() and note.read_text(), "the worker runs")
    keeper = Supervisor(running, lambda _: None)
    running.processes[0].popen.kill()
    assert keeper.wait(lambda: keeper.deaths, 10)
    until(lambda: _gone(int(note.read_text())), "the worker is gone")


def test_one_that_is_stopped_on_purpose_is_not_restarted(deployed):
    running = deployed(cache=SLEEPS)
    keeper = Supervisor(running, lambda _: None)
    running.processes[0].popen.kill()
    assert keeper.wait(lambda: keeper.deaths, 10)
    running.processes.clear()
    assert not keeper.wait(lambda: keeper.deaths[0].again_s, 1.2)


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z" or os.getsid(pid) == 0
    except (FileNotFoundError, ProcessLookupError):
        return True
