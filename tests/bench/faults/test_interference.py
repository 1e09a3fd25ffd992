"""How much of the machine others take while the site's own processes die."""

from __future__ import annotations

import signal
import subprocess
import sys

import psutil

from bench.faults.interference import OthersShare
from bench.machine import processes
from tests.waiting import until

# A master with two workers that count until they have no master any more, as an application server's.
WORKER = "import os\nmaster = os.getppid()\nwhile os.getppid() == master: pass"
MASTER = f"import subprocess, sys; [subprocess.Popen([sys.executable, '-c', {WORKER!r}]) for _ in 'ab']; input()"


def test_workers_whose_master_was_killed_are_no_others(monkeypatch):
    busy = [0.0]
    monkeypatch.setattr("bench.machine.processes.machine_busy_s", lambda: busy[-1])
    with subprocess.Popen([sys.executable, "-c", MASTER], stdin=subprocess.PIPE) as master:
        until(lambda: processes.cpu_seconds(master.pid) > 0.5, "workers that count")
        workers = psutil.Process(master.pid).children()
        with OthersShare() as others:
            began = processes.cpu_seconds(master.pid)
            until(lambda: processes.cpu_seconds(master.pid) > began + 1, "workers that count on")
            # The machine was busy with nothing else.
            busy.append(processes.cpu_seconds(master.pid) - began)
            master.send_signal(signal.SIGKILL)
            psutil.wait_procs(workers, timeout=20)
    assert others.share < 0.05


def test_what_another_process_uses_is_that_of_others(monkeypatch):
    monkeypatch.setattr("bench.machine.processes.machine_busy_s", iter([10.0, 10.0 + 1000]).__next__)
    with OthersShare() as others:
        pass
    assert others.share == 1.0
