"""A playbook that is started once for several trials, and again after one that failed."""

from __future__ import annotations

import json
import subprocess

import psutil
import pytest

from bench.measure.hosts import play
from bench.serve.production.inventory import Host, Inventory
from tests.bench.measure.hosts import inventories
from tests.waiting import until

pytestmark = pytest.mark.servers
WEB = Host("web1", "127.0.0.1", ("web",), "127.0.0.1", local=True)
PLAYBOOK = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Wait for a trial
      ansible.builtin.set_fact:
        trial: "{{ lookup('ansible.builtin.pipe', 'cat ' ~ queue | quote) | from_json }}"
      run_once: true

    - name: Do it
      ansible.builtin.raw: echo {{ trial.word }}; exit {{ trial.code }}
"""


def test_a_reader_left_behind_takes_no_later_trial(tmp_path, monkeypatch):
    """As Ansible leaves one that is ended while it starts the next play."""
    known = inventories.write(Inventory(tmp_path / "hosts.ini", (WEB,)))
    playbook = tmp_path / "playbook.yml"
    playbook.write_text(PLAYBOOK)
    plays = play.Plays(playbook, known)
    end, left = play._end, []

    def end_and_leave_one(process):
        end(process)
        queue = json.loads(process.args[-1])["queue"]
        reader = psutil.Popen(["cat", queue], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        until(lambda: (reader.name(), reader.status()) == ("cat", psutil.STATUS_SLEEPING), "it waits for a writer")
        left.append(reader)

    monkeypatch.setattr(play, "_end", end_and_leave_one)
    with plays:
        failed = plays.play({"word": "one", "code": 1}, tmp_path / "out", 60, print)
        again = plays.play({"word": "two", "code": 0}, tmp_path / "out", 60, print)
    assert [bool(result.failure) for result in failed if result.task == "Do it"] == [True]
    assert [(result.failure, result.stdout.strip()) for result in again if result.task == "Do it"] == [("", "two")]
    assert [process.wait(60) for process in left] != []
