"""Processes that end beside their master are counted."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import psutil
import pytest

from bench.faults.watch import Workers
from tests.waiting import until

MASTER = """
import subprocess, sys
for _ in range(2):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def master():
    with subprocess.Popen([sys.executable, "-c", MASTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as popen:
        popen.stdout.readline()
        children = psutil.Process(popen.pid).children()
        yield popen
        for child in children:
            child.kill()


def test_a_worker_that_ends_is_counted_once(master):
    running = SimpleNamespace(chain=SimpleNamespace(servers=[SimpleNamespace(pid=master.pid)]))
    workers = Workers(running)
    assert workers.look() == 0
    psutil.Process(master.pid).children()[0].kill()
    until(workers.look, "it is noticed")
    assert workers.look() == 1
    assert Workers(running).look() == 0
