"""The costs of a process tree: real processes, and cases in which the kernel says nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from bench.serve.machine import processes
from tests.waiting import until

HOG = 40 * 1024 * 1024


@pytest.fixture
def spawn():
    """Start Python code and wait until it says it is ready; ended afterwards whatever happens."""
    started = []

    def start(code):
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        started.append(process)
        assert process.stdout.readline() == b"ready\n"
        return process

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def step(process):
    """Let the code of a process go on until it says so."""
    process.stdin.write(b"\n")
    process.stdin.flush()
    process.stdout.readline()


def sampled(roots, during, interval_s=0.05):
    sampler = processes.Sampler(roots, interval_s)
    sampler.start()
    during()
    return sampler.stop()


needs_pss = pytest.mark.skipif(
    not os.access("/proc/self/smaps_rollup", os.R_OK), reason="the kernel has no /proc/PID/smaps_rollup"
)


@needs_pss
def test_memory_is_that_of_the_whole_tree(spawn):
    parent = spawn(
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', 'x = b\"x\" * {HOG}; print(\"up\", flush=True); input()'],"
        " stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "child.stdout.readline(); print('ready', flush=True); input()"
    )
    usage = sampled({"one": parent.pid}, lambda: None)["one"]
    assert usage.processes == 2
    assert HOG < usage.memory_peak_bytes < HOG + 100 * 1024 * 1024


@needs_pss
def test_even_the_shortest_trial_has_a_sample_at_its_start_and_its_end(spawn):
    process = spawn("print('ready', flush=True); input()")
    usage = sampled({"one": process.pid}, lambda: None, interval_s=60)["one"]
    assert len(usage.memory) == 2
    assert usage.memory[0][0] < 1 and usage.memory[0][0] <= usage.memory[1][0]


@needs_pss
def test_samples_come_at_the_interval(spawn):
    process = spawn("print('ready', flush=True); input()")
    usage = sampled({"one": process.pid}, lambda: time.sleep(1), interval_s=0.1)["one"]
    assert 3 <= len(usage.memory) <= 13
    assert usage.memory_peak_bytes == max(size for _, size in usage.memory)


BURN = "import time\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\n"


def test_processor_time_of_a_child_that_ended_counts(spawn):
    parent = spawn(
        "import subprocess, sys\nprint('ready', flush=True); input()\n"
        f"subprocess.run([sys.executable, '-c', {BURN.format(seconds=0.3)!r}])\n"
        "print('done', flush=True); input()"
    )

    # The interval is longer than the child lives, so that no sample ever sees it.
    usage = sampled({"one": parent.pid}, lambda: step(parent), interval_s=60)["one"]
    assert 0.25 < usage.cpu_seconds < 5


def test_processor_time_of_a_child_nobody_waits_for_counts(spawn):
    parent = spawn(
        "import signal, subprocess, sys\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "print('ready', flush=True); input()\n"
        f"subprocess.Popen([sys.executable, '-c', {BURN.format(seconds=1)!r}]).wait()\n"
        "print('done', flush=True); input()"
    )

    usage = sampled({"one": parent.pid}, lambda: step(parent))["one"]
    assert 0.6 < usage.cpu_seconds < 5


def test_what_was_used_before_the_start_does_not_count(spawn):
    process = spawn(BURN.format(seconds=0.5) + "print('ready', flush=True); input()")
    assert sampled({"one": process.pid}, lambda: None)["one"].cpu_seconds < 0.2


def test_memory_that_may_not_be_read_is_not_measured(spawn, monkeypatch):
    process = spawn("print('ready', flush=True); input()")

    def denied(process):
        raise psutil.AccessDenied(process.pid)

    monkeypatch.setattr(psutil.Process, "memory_full_info", denied)
    usage = sampled({"one": process.pid}, lambda: None)["one"]
    assert usage.memory == ()
    assert usage.memory_peak_bytes is None
    assert usage.processes == 1
    assert usage.cpu_seconds is not None


def test_a_server_that_is_gone_is_not_measured():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert sampled({"one": process.pid}, lambda: None) == {"one": processes.Usage((), None, None, None)}


@needs_pss
def test_a_server_that_dies_on_the_way_keeps_what_was_seen(spawn):
    process = spawn("print('ready', flush=True); input()")

    def during():
        process.kill()
        process.wait()

    # The next sample is not due while it dies.
    usage = sampled({"one": process.pid}, during, interval_s=60)["one"]
    assert len(usage.memory) == 1
    assert usage.cpu_seconds >= 0


MASTER = """
import subprocess, sys
def work(): return subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)
old = work(); print('ready', flush=True); input()
old.kill(); old.wait()
if {again}: work()
print('done', flush=True); input()
"""


@pytest.mark.parametrize(("again", "replaced"), [(True, 1), (False, 0)])
def test_a_worker_that_ended_and_has_a_successor_is_replaced(spawn, again, replaced):
    master = spawn(MASTER.format(again=again))

    assert sampled({"one": master.pid}, lambda: step(master), interval_s=60)["one"].replaced == replaced


def test_the_slope_is_not_bent_by_one_sample():
    assert processes.slope([(0, 100), (1, 110), (2, 120), (3, 900), (4, 140), (5, 150)]) == 10
    assert processes.slope([(0, 100), (1, 110), (2, 120)]) is None, "too few to tell"
    assert processes.slope([(0, 7), (1, 7), (2, 7), (3, 7)]) == 0


def test_a_dear_look_makes_the_next_one_later(spawn, monkeypatch):
    process = spawn("print('ready', flush=True); input()")
    end = processes._Tree.sample

    def dear(*args):
        until_used = time.thread_time() + 0.05
        while time.thread_time() < until_used:
            pass
        return end(*args)

    monkeypatch.setattr(processes._Tree, "sample", dear)
    usage = sampled({"one": process.pid}, lambda: time.sleep(0.6), interval_s=0.1)["one"]
    assert usage.processes == 1
    # 0.05 s are a hundredth of 5 s: the first, one more, and the last.
    assert len(usage.memory) <= 3


def test_a_kernel_that_does_not_list_children_is_read_for_all_processes(spawn, monkeypatch):
    parent = spawn(MASTER.format(again=False))
    listed = processes.members(parent.pid)
    monkeypatch.setattr(processes, "CHILDREN", processes.Path("/nonexistent"))
    assert processes.members(parent.pid) == listed
    assert len(listed) == 2


def test_trees_are_sampled_apart_and_the_thread_ends(spawn):
    roots = {name: spawn("print('ready', flush=True); input()").pid for name in ("front", "back")}
    sampler = processes.Sampler(roots, 0.05)
    sampler.start()
    assert set(sampler.stop()) == {"front", "back"}
    assert "sampler" not in [thread.name for thread in threading.enumerate()]


def test_a_long_trial_records_a_bounded_number_of_samples():
    samples = [(float(second), second) for second in range(7200)]
    kept = processes.thinned(samples)
    assert len(kept) == len(set(kept)) == processes.MAX_SAMPLES
    assert (kept[0], kept[-1]) == (samples[0], samples[-1])
    assert processes.thinned(samples[:600]) == tuple(samples[:600])


# ------------------------------------------------------------------------------------------ all other processes


def test_what_is_ours_is_not_interference():
    seen = processes.Interference()
    while seen.share([0.0]) is None:
        pass
    assert 0 <= seen.share([0.0]) <= 1
    assert seen.share([1e6]) == 0
    assert seen.share([None]) is None


def test_what_another_process_uses_is_interference(monkeypatch):
    monkeypatch.setattr(processes, "machine_busy_s", iter([10.0, 10.0 + 1000]).__next__)
    assert processes.Interference().share([1.0]) == 1.0


# A master with two workers that count until they have no master any more, as an application server's.
WORKER = "import os\nmaster = os.getppid()\nwhile os.getppid() == master: pass"
COUNTING = f"import subprocess, sys; [subprocess.Popen([sys.executable, '-c', {WORKER!r}]) for _ in 'ab']; input()"


def test_workers_whose_master_was_killed_are_still_ours(monkeypatch):
    busy = [0.0]
    monkeypatch.setattr(processes, "machine_busy_s", lambda: busy[-1])
    with subprocess.Popen([sys.executable, "-c", COUNTING], stdin=subprocess.PIPE) as master:
        until(lambda: processes.cpu_seconds(master.pid) > 0.5, "workers that count")
        workers = psutil.Process(master.pid).children()
        interference = processes.Interference()
        with processes.Sampler({"ours": os.getpid()}, 0.2, memory=False) as sampler:
            began = processes.cpu_seconds(master.pid)
            until(lambda: processes.cpu_seconds(master.pid) > began + 1, "workers that count on")
            # The machine was busy with nothing else.
            busy.append(processes.cpu_seconds(master.pid) - began)
            master.send_signal(signal.SIGKILL)
            psutil.wait_procs(workers, timeout=60)
    usage = sampler.stop()["ours"]
    assert interference.share([usage.cpu_seconds]) < 0.05
    assert usage.memory == ()


def test_the_busiest_processes_of_others_are_named():
    load = processes.MachineLoad.of(0.62, {(12, "chromium"): 0.1, (13, "cc1"): 0.4, (14, "idle"): 0.01})
    assert load.share == 0.62
    assert load.words == "other processes take 62% of this machine (cc1, process 13: 40%; chromium, process 12: 10%)"


def test_a_load_of_processes_that_cannot_be_seen_is_reported_too():
    assert (
        processes.MachineLoad.of(0.5, {}).words
        == "other processes take 50% of this machine (none that can be seen from here)"
    )


def test_the_real_machine_can_be_observed():
    load = processes.machine_load(0.05)
    assert load.share is None or 0 <= load.share <= 1
