"""Play a playbook on the hosts of an inventory, and read the results of tasks from Ansible's output."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import psutil

from bench import programs
from bench.errors import BenchError
from bench.serve.production.inventory import ALIVE_S, CONNECT_TIMEOUT_S, INSTALL, Inventory
from bench.verify.hosts.ssh import last_line

# Each result on one line, whatever the user has configured.
ENVIRONMENT = {
    "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
    "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
    "ANSIBLE_CALLBACK_FORMAT_PRETTY": "False",
    "ANSIBLE_DISPLAY_OK_HOSTS": "True",
    "ANSIBLE_DISPLAY_FAILED_STDERR": "False",
    "ANSIBLE_CHECK_MODE_MARKERS": "False",
    "ANSIBLE_NO_LOG": "False",
    "ANSIBLE_NOCOLOR": "1",
    "ANSIBLE_FORCE_COLOR": "0",
    "ANSIBLE_NOCOWS": "1",
    "ANSIBLE_DEPRECATION_WARNINGS": "False",
    "ANSIBLE_INTERPRETER_PYTHON": "auto_silent",
    "ANSIBLE_TIMEOUT": str(CONNECT_TIMEOUT_S),
    # A host that is gone is noticed during the load.
    "ANSIBLE_SSH_EXTRA_ARGS": f"-o ServerAliveInterval={ALIVE_S}",
}
TASK = re.compile(r"TASK \[(.*)\] \**$")
RESULT = re.compile(r"(ok|changed|fatal): \[([^\]]+)\][^{]*=> (\{.*\})$")
# The task that waits for the variables of a trial.
WAIT = "Wait for a trial"
POLL_S = 0.01
# For Ansible to end the programs on all hosts.
END_S = 8.0


@dataclass(frozen=True)
class TaskResult:
    """The result of a task on a host; `failure` is empty after success."""

    task: str
    host: str
    failure: str
    stdout: str


class Plays:
    """A playbook that makes trials, one play each, as a context: Ansible starts once, not for each trial.

    Each play begins with a task that reads the variables of a trial from the named pipe `queue`. Each start of Ansible
    has its own pipe.
    """

    def __init__(self, playbook: Path, inventory: Inventory) -> None:
        self._playbook, self._inventory = playbook, inventory
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._folder = TemporaryDirectory(prefix="benchapp-ansible-")
        self._queue = Path(self._folder.name) / "queue"
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._folder.cleanup()

    def end(self) -> None:
        """End Ansible, and what it runs on the hosts."""
        process, self._process = self._process, None
        if process:
            _end(process)
            assert process.stdout
            process.stdout.close()
            _close(self._queue)

    def play(
        self, variables: Mapping[str, Any], output: Path, limit_s: float, begun: Callable[[str], None]
    ) -> list[TaskResult]:
        """Make a trial; returns the results in order of time, without tasks that were skipped.

        output  the file of Ansible's output
        begun   called with the name of each task when it begins

        Raises BenchError without Ansible, if the playbook cannot be played, or after the limit.
        """
        if self._process and self._process.poll() is not None:
            self.end()
        self._process = self._process or self._started()
        is_complete = False
        try:
            lines = _output(self._process, self._queue, json.dumps(variables), output, limit_s, begun)
            results = _results(lines)
            if not results:
                raise BenchError(f"ansible-playbook: {last_line(''.join(lines), 'it wrote nothing')}")
            is_complete = not any(result.failure for result in results)
        finally:
            # Ansible leaves a host that failed out of later plays.
            if not is_complete:
                self.end()
        return results

    def _started(self) -> subprocess.Popen[str]:
        program = programs.find(["ansible-playbook"])
        if program is None:
            raise BenchError(f"program not installed: ansible-playbook; install it: {INSTALL}")
        os.mkfifo(self._queue)
        given = json.dumps({"queue": str(self._queue)})
        # Ansible ends the programs on all hosts at SIGTERM, which the kernel sends if this process is killed.
        setpriv = shutil.which("setpriv")
        guard = []
        if setpriv:
            guard = [setpriv, "--pdeathsig", "TERM", "--"]
        own = {"ANSIBLE_FORKS": str(len(self._inventory.hosts)), "ANSIBLE_LOCAL_TEMP": self._folder.name}
        return subprocess.Popen(
            [*guard, str(program), "-v", "-i", str(self._inventory.path), str(self._playbook), "--extra-vars", given],
            env={**os.environ, **ENVIRONMENT, **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )


def _output(
    process: subprocess.Popen[str],
    queue: Path,
    variables: str,
    copy: Path,
    limit_s: float,
    begun: Callable[[str], None],
) -> list[str]:
    """The lines of one play, also written to a file; `variables` go to the play."""
    late = threading.Event()

    def give_up() -> None:
        late.set()
        _end(process)

    timer = threading.Timer(limit_s, give_up)
    timer.start()
    lines, given_away = [], False
    try:
        assert process.stdout
        with copy.open("w", encoding="utf-8") as file:
            for line in process.stdout:
                if given_away and line.startswith("PLAY "):
                    break
                lines.append(line)
                file.write(line)
                task = TASK.match(line)
                if task and task[1] == WAIT:
                    given_away = _give(process, queue, variables)
                elif task:
                    begun(task[1])
    finally:
        timer.cancel()
    if late.is_set():
        raise BenchError(f"ansible-playbook was not done after {limit_s:.0f} s and was stopped")
    return lines


def _give(process: subprocess.Popen[str], queue: Path, text: str) -> bool:
    """Write to the named pipe as soon as it is read; false if Ansible ended instead."""
    while process.poll() is None:
        try:
            writing = os.open(queue, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            # The other end is not open yet.
            time.sleep(POLL_S)
            continue
        with os.fdopen(writing, "w", encoding="utf-8") as pipe:
            pipe.write(text)
        return True
    return False


def _close(queue: Path) -> None:
    """Remove the named pipe, and end a reader that Ansible left behind: it would take the next trial's variables."""
    writing = os.open(queue, os.O_RDWR | os.O_NONBLOCK)
    queue.unlink()
    os.close(writing)


def _end(process: subprocess.Popen[str]) -> None:
    """End Ansible and what it has started, if still running."""
    if process.poll() is not None:
        return
    with contextlib.suppress(psutil.NoSuchProcess):
        below = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        _, alive = psutil.wait_procs([*below, psutil.Process(process.pid)], END_S)
        for left in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                left.kill()
    process.wait()


def _results(lines: list[str]) -> list[TaskResult]:
    """The results in Ansible's output."""
    task, results = "", []
    for line in lines:
        if begins := TASK.match(line.strip()):
            task = begins[1]
        elif result := RESULT.match(line.strip()):
            status, host, text = result.groups()
            with contextlib.suppress(ValueError):
                results.append(_result(task, host, status == "fatal", json.loads(text)))
    return results


def _result(task: str, host: str, failed: bool, fields: dict[str, Any]) -> TaskResult:
    stdout = str(fields.get("stdout", ""))
    if not failed:
        return TaskResult(task, host, "", stdout)
    message = last_line(str(fields.get("msg", "")), "no reason given")
    if fields.get("unreachable"):
        return TaskResult(task, host, message.rpartition("ssh: ")[2], stdout)
    # The program's own last words, if it has any.
    return TaskResult(task, host, last_line(stdout, message), stdout)
