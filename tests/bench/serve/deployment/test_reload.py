"""Finding the `up` that a reload is for."""

from __future__ import annotations

import json
import os
import subprocess

import psutil
import pytest

from bench.errors import BenchError
from bench.serve.deployment import reload
from bench.serve.deployment.reload import Served
from bench.serve.machine import orphans
from tests.waiting import until


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(reload, "FOLDER", tmp_path)
    return tmp_path


def served(pid: int, port: int, owner: str = "") -> Served:
    one = Served(owner or orphans.owner(), pid, "gunicorn", "none", f"http://127.0.0.1:{port}")
    one.write()
    return one


def test_the_only_one_needs_no_option():
    one = served(os.getpid(), 8001)
    assert reload.find() == one
    assert reload.find(port=8001) == one
    assert reload.find(pid=os.getpid()) == one


def test_without_one_it_says_what_to_do():
    with pytest.raises(
        BenchError, match=r"^nothing of this checkout is served by `python -m bench up`; start one first$"
    ):
        reload.find()


def test_of_several_one_must_be_named():
    served(11, 8001), served(12, 8002)
    assert reload.find(port=8002).pid == 12
    with pytest.raises(
        BenchError, match=r"^name one of them with --port or --pid: gunicorn .*:8001/, pid 11; gunicorn "
    ):
        reload.find()
    with pytest.raises(BenchError, match=r"^no `up` has port 9; there are: gunicorn with layer none at http"):
        reload.find(port=9)


def test_what_a_killed_one_left_behind_is_removed(folder):
    host, boot, *_ = orphans.owner().split(" ")
    served(13, 8003, f"{host} {boot} 1 0.00")
    (folder / "14.json").write_text(json.dumps({"torn": True}), "utf-8")
    assert reload.all_served() == []
    assert not (folder / "13.json").exists()


def test_an_up_that_ends_before_it_is_used_is_one_line():
    """It was found, and has ended since."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    one = served(gone.pid, 8001)
    with pytest.raises(BenchError, match=r"^gunicorn .*:8001/, pid \d+: this `up` has ended; start it again$"):
        reload.request_reload(one)


def test_an_up_of_another_host_is_not_signalled(monkeypatch, folder):
    """Its number is another process here: SIGUSR1 would end it."""
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a signal is sent"))
    one = served(os.getpid(), 8001, "elsewhere boot 1 0.00")
    with pytest.raises(BenchError, match=r"runs on another host; reload there, or remove .*\.json$"):
        reload.request_reload(one)


def test_a_killed_up_whose_parent_has_not_noticed_is_gone(folder):
    host, boot, *_ = orphans.owner().split(" ")
    killed = subprocess.Popen(["sleep", "60"])
    since = psutil.Process(killed.pid).create_time()
    served(killed.pid, 8001, f"{host} {boot} {killed.pid} {since:.2f}")
    assert len(reload.all_served()) == 1
    killed.kill()
    until(lambda: psutil.Process(killed.pid).status() == psutil.STATUS_ZOMBIE, "it has ended")
    with pytest.raises(BenchError, match=r"^nothing of this checkout is served"):
        reload.find()
    killed.wait()
