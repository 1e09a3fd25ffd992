"""A load tool as a process: files, limits and output, and no process left after the trial."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time

import psutil
import pytest

from bench import paths
from bench.measure.load import Command
from bench.measure.run import load_process
from bench.measure.run.load_process import TrialError
from bench.serve.machine import error_output
from tests.waiting import until


def python(code, **how):
    return Command((sys.executable, "-c", code), **how)


def test_files_and_environment_are_the_commands_own(tmp_path, monkeypatch):
    monkeypatch.setenv("K6_DURATION", "1h")
    command = python(
        "import os; print(sorted(set(os.environ) - {'LC_CTYPE'}), open('a/b').read())",
        files={"a/b": "content"},
        env={"MINE": "1"},
    )
    assert load_process.run(command, 1, tmp_path / "load", 10)[0] == "['HOME', 'LANG', 'MINE', 'PATH'] content\n"


def test_a_load_tool_that_does_not_end_is_stopped(tmp_path):
    with pytest.raises(TrialError, match=r"was not done after 0\.2 s and was stopped"):
        load_process.run(python("import time; time.sleep(60)"), 1, tmp_path / "load", 0.2)


def test_a_warm_up_is_stopped_in_time_and_its_output_saved(tmp_path):
    code = "import time\ntry:\n time.sleep(60)\nexcept KeyboardInterrupt:\n print('stopped')"
    # A busy machine needs longer until Python has started.
    for interrupt_after_s in (1, 5, 15):
        began = time.monotonic()
        out, _ = load_process.run(python(code), 1, tmp_path / "warmup", 50, interrupt_after_s=interrupt_after_s)
        if out:
            break
    assert out == "stopped\n"
    assert time.monotonic() - began < 40


def test_endless_errors_do_not_fill_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(error_output, "MAX_LOG_BYTES", 1000)
    load_process.run(python("import sys; sys.stderr.write('first' + 'x' * 1_000_000)"), 1, tmp_path / "load", 30)
    assert (tmp_path / "load.err").read_text().startswith("firstxxx")
    assert (tmp_path / "load.err").stat().st_size == 1000


def test_a_load_tool_may_open_a_file_for_each_connection_and_nobody_else(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = soft + 1 if hard == resource.RLIM_INFINITY else min(soft + 1, hard)
    out, _ = load_process.run(
        python("import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"), soft, tmp_path / "load", 30
    )
    assert int(out) >= wanted
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)


def test_a_killed_instrument_takes_its_load_tool_with_it(tmp_path):
    code = (
        "import sys, pathlib; from bench.measure.load import Command; from bench.measure.run.load_process import run\n"
    )
    code += "run(Command(('/bin/sleep', '300')), 1, pathlib.Path(sys.argv[1]) / 'load', 400)"
    instrument = psutil.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=paths.KIT)
    try:
        until(lambda: "sleep" in [child.name() for child in instrument.children()], "the load tool has begun")
        tools = instrument.children()
    finally:
        instrument.kill()
        instrument.wait()
    _, alive = psutil.wait_procs(tools, timeout=60)
    for process in alive:
        process.kill()
    assert not alive


def test_no_load_tool_outlives_its_trial(tmp_path):
    code = (
        "import sys, pathlib\nsys.path.insert(0, '.')\nfrom bench.measure.load import Command\n"
        "from bench.measure.run.load_process import run\n"
        "run(Command((sys.executable, '-c', 'import os,time; print(os.getpid(), flush=True); time.sleep(60)')),"
        f" 1, pathlib.Path({str(tmp_path)!r}) / 'load', 60)"
    )
    runner = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    out = tmp_path / "load.out"
    until(lambda: out.exists() and out.read_text().endswith("\n"), "the load tool has begun")
    runner.send_signal(signal.SIGINT)
    runner.wait(60)
    with pytest.raises(ProcessLookupError):
        os.kill(int(out.read_text()), 0)
