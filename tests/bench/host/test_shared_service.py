"""A service that keeps its data is one for all who use it at once, and ends with the last of them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from bench import paths

# Uses the service in the directory of its first argument until its standard input ends.
USER = """
import os, pathlib, sys
from bench import paths
paths.VAR = pathlib.Path(sys.argv[1])
from bench.host import shared_service
from bench.host.identity import worker
service = "import signal, sys; print('up', flush=True); signal.sigwait([signal.SIGINT])"
use = shared_service.Kept("service", worker(paths.VAR))
with use.entering() as runs:
    if not runs:
        use.start([str(paths.PYTHON), "-c", service], "INT", dict(os.environ))
        while use.log.read_text() != "up\\n":
            assert use.died() is None, use.died()
print(use.joined, use.pid, flush=True)
sys.stdin.read()
use.leave()
"""


@pytest.fixture
def user(tmp_path):
    """Starts programs that use the service, and ends what a test leaves of them."""
    users = []

    def start() -> tuple[subprocess.Popen, bool, psutil.Process]:
        process = subprocess.Popen(
            [sys.executable, "-c", USER, str(tmp_path)],
            cwd=paths.PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        users.append(process)
        joined, pid = process.stdout.readline().split()
        return process, joined == "True", psutil.Process(int(pid))

    yield start
    for process in users:
        process.kill()
        process.communicate()


def ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def wait_until_ended(process: psutil.Process) -> None:
    deadline = time.monotonic() + 10
    while not ended(process):
        assert time.monotonic() < deadline, "it goes on"
        time.sleep(0.02)


def run_folder(tmp_path: Path) -> Path:
    return tmp_path / "service" / "run"


def test_the_second_joins_the_first_and_goes_on_when_that_is_killed(user, tmp_path):
    first, joined, keeper = user()
    second, also_joined, same = user()
    assert (joined, also_joined, same) == (False, True, keeper)
    service = keeper.children()[0]
    first.kill()
    first.wait()
    assert not ended(service)
    third, joined, same = user()
    assert (joined, same) == (True, keeper)
    third.communicate(timeout=20)
    assert not ended(service), "the second still uses it"
    second.communicate(timeout=20)
    # The last to leave returns only when nothing is left.
    assert ended(service)
    assert not run_folder(tmp_path).exists()


def test_a_service_whose_only_user_is_killed_ends_by_itself(user, tmp_path):
    only, _, keeper = user()
    service = keeper.children()[0]
    only.kill()
    only.wait()
    for process in (service, keeper):
        wait_until_ended(process)
    other, joined, new = user()
    assert (joined, new.pid != keeper.pid) == (False, True)
    other.communicate(timeout=20)


def test_a_service_does_not_outlive_its_keeper(user):
    _, _, keeper = user()
    service = keeper.children()[0]
    keeper.kill()
    wait_until_ended(service)
