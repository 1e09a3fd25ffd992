"""The remains of a killed instrument are cleaned up by the next one, and nothing else is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

from bench import paths
from bench.serve.machine import orphans
from tests.bench.serve.machine.sessions import members
from tests.waiting import until

OWNER = """
import os, sys
from pathlib import Path
from bench import paths
from bench.serve.machine import orphans, supervise
from bench.serve.machine.identity import worker
paths.STATE = Path(sys.argv[1])
scratch = Path(sys.argv[2]); scratch.mkdir()
register = orphans.Register(scratch)
identity = worker(scratch.parent)
argv = [sys.executable, "-c", sys.argv[3]]
process = supervise.start(argv, scratch / "it.log", identity, env=dict(os.environ), cwd=Path("/"))
register.add(process.pid)
print(process.pid, flush=True)
sys.stdin.read()
"""
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0: print("begun", flush=True)
time.sleep(600)
"""


def test_what_a_killed_instrument_leaves_is_cleaned_up(tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    argv = [sys.executable, "-c", OWNER, str(tmp_path / "var"), str(scratch), STUBBORN]
    owner = subprocess.Popen(argv, cwd=paths.KIT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    session = int(owner.stdout.readline())
    try:
        until(lambda: "begun" in (scratch / "it.log").read_text(), "the session has begun")
        assert len(members(session)) == 2
        monkeypatch.setattr(paths, "STATE", tmp_path / "var")
        assert orphans.clean() == 0, "what runs is not touched"
        assert len(members(session)) == 2
        owner.kill()
        owner.wait()
        assert orphans.clean() == 1
        until(lambda: members(session) == [], "the session has ended")
        assert not scratch.exists()
        assert orphans.clean() == 0
    finally:
        owner.kill()
        owner.communicate()
        for pid in members(session):
            os.kill(pid, signal.SIGKILL)


def test_a_stranger_with_the_same_number_is_not_touched(tmp_path, monkeypatch):
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    monkeypatch.setattr(paths, "STATE", tmp_path)
    (tmp_path / "run").mkdir()
    entry = {"owner": [2**22 + 5, 1.0], "scratch": str(tmp_path / "none"), "processes": [[process.pid, 12345.0]]}
    (tmp_path / "run" / "x.json").write_text(json.dumps(entry))
    try:
        assert orphans.clean() == 1
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_who_has_ended_is_known_and_strangers_are_not_touched():
    script = "from bench.serve.machine import orphans; print(orphans.owner())"
    ended = subprocess.run([sys.executable, "-c", script], cwd=paths.KIT, capture_output=True, text=True).stdout.strip()
    assert orphans.is_gone(ended)
    assert not orphans.is_gone(orphans.owner())
    assert not orphans.is_gone(f"elsewhere {ended.partition(' ')[2]}")
    assert not orphans.is_gone("somebody")
