"""A lock is held by one process at a time, and by nobody once that has ended, however it ended."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench import paths
from bench.errors import BenchError, GlobalFault
from bench.serve.machine.lock import exclusive, shared

# Holds the lock of its first argument; with "shared" it shares it, with another word it starts a child that holds it,
# too, until it is killed.
HOLDER = """
import subprocess, sys
from pathlib import Path
from bench.serve.machine.lock import exclusive, shared
hold = shared if sys.argv[2:] == ["shared"] else exclusive
with hold(Path(sys.argv[1]), "the thing") as handle:
    child = [sys.executable, "-c", "import sys; print('held', flush=True); sys.stdin.read()"]
    if sys.argv[2:] and handle:
        process = subprocess.Popen(child, stdin=0, pass_fds=[handle.fileno()])
        process.wait()
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Starts a program that holds the lock of a file, and returns it when it does."""
    started = []

    def start(*words: str) -> subprocess.Popen:
        argv = [sys.executable, "-c", HOLDER, str(tmp_path / "lock"), *words]
        process = subprocess.Popen(
            argv, cwd=paths.KIT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.__exit__(None, None, None)


def test_a_lock_is_for_one_and_then_for_the_next(tmp_path, capsys):
    for _ in range(2):
        with exclusive(tmp_path / "lock", "the thing", timeout_s=0):
            pass
    assert capsys.readouterr().err == ""


def test_the_second_says_for_what_and_whom_it_waits_and_gives_up_in_time(holder, tmp_path, capsys):
    process = holder()
    user = rf"process {process.pid} \(.+ -c import subprocess, .*\.\.\.\)"
    message = rf"^the thing is still in use by {user} after 0\.2 s; stop that first$"
    with pytest.raises(BenchError, match=message), exclusive(tmp_path / "lock", "the thing", timeout_s=0.2):
        pass
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(rf"the thing is in use by {user}; waiting for it up to 0\.2 s", line)


def test_a_shared_lock_is_for_several_and_not_for_only_one(holder, tmp_path):
    one, other, gone = holder("shared"), holder("shared"), holder("shared")
    gone.kill()
    gone.wait()
    with shared(tmp_path / "lock", "the thing", timeout_s=0):
        pass
    user = r"process {} \(.+?\)"
    message = f"^the thing is still in use by {user.format(one.pid)} and {user.format(other.pid)} after"
    with pytest.raises(GlobalFault, match=message), exclusive(tmp_path / "lock", "the thing", timeout_s=0.2):
        pass


def test_an_exclusive_lock_is_not_shared(holder, tmp_path):
    process = holder()
    message = rf"^the thing is still in use by process {process.pid} "
    with pytest.raises(GlobalFault, match=message), shared(tmp_path / "lock", "the thing", timeout_s=0.2):
        pass


def test_a_killed_holder_holds_nothing(holder, tmp_path):
    process = holder()
    process.kill()
    process.wait()
    with exclusive(tmp_path / "lock", "the thing", timeout_s=5):
        pass


def test_a_child_that_was_passed_the_file_holds_the_lock_until_it_ends(holder, tmp_path):
    process = holder("with a child")
    process.kill()
    process.wait()
    message = "still in use by an orphan of a process that has ended after"
    with pytest.raises(BenchError, match=message), exclusive(tmp_path / "lock", "the thing", timeout_s=0.2):
        pass
    process.stdin.close()
    with exclusive(tmp_path / "lock", "the thing", timeout_s=60):
        pass


def test_a_file_that_cannot_be_locked_is_named():
    message = r"^/nowhere/lock: cannot be locked: No such file or directory; "
    with pytest.raises(BenchError, match=message), exclusive(Path("/nowhere/lock"), "the thing"):
        pass
