"""Processor cores for load tool, stack and services."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.serve.machine import cpu_affinity


@pytest.mark.parametrize(
    ("available", "expected"),
    [
        (1, None),
        (3, None),
        (4, {"load": (3,), "services": (2,), "stack": (0, 1)}),
        (8, {"load": (6, 7), "services": (4, 5), "stack": (0, 1, 2, 3)}),
    ],
)
def test_cores_are_shared_out_if_there_are_enough(available, expected):
    assert cpu_affinity.cores(range(available)) == expected


def test_a_running_tree_is_moved_with_all_its_threads():
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core")
    last = max(os.sched_getaffinity(0))
    code = (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "print(flush=True)\ntime.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        cpu_affinity.move({"stack": (last,)}, "stack", [process.pid])
        tasks = [int(path.name) for path in Path(f"/proc/{process.pid}/task").iterdir()]
        assert len(tasks) == 2
        assert {tuple(os.sched_getaffinity(task)) for task in tasks} == {(last,)}
    finally:
        process.kill()
        process.communicate()


def test_programs_started_in_the_block_stay_on_its_cores():
    before = os.sched_getaffinity(0)
    last = max(before)
    with cpu_affinity.pinned({"load": (last,)}, "load"):
        done = subprocess.run(
            [sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))"], capture_output=True, text=True
        )
    assert done.stdout.strip() == f"[{last}]"
    assert os.sched_getaffinity(0) == before
