"""A published benchmark repeated: its parts are made once, left out with a reason, and gone on with."""

from __future__ import annotations

import json
import os
import signal
import threading
import time

import pytest

from bench.measure.records.folder import read_run
from bench.measure.run import guards
from reproductions import __main__ as reproductions
from reproductions import folder, published
from tests.deploy.running import runnable
from tests.reproductions.tiny import publication

UNGUARDED = [word for name in guards.BOUNDS for word in ("--guard", f"{name}=off")]
PART = {"layers": ("none",), "workloads": ["login"], "levels": [1], "rounds": 1, "duration_s": 1}


@pytest.fixture
def small(monkeypatch, site_url):
    """A benchmark of one real run, a part that no machine can run, and a check."""
    runnable("gunicorn")
    parts = [
        {"name": "first", "stacks": ["gunicorn"], "database": site_url, **PART},
        {"name": "second", "stacks": ["gunicorn"], "database": site_url, **PART, "layers": ("uwsgi-cache",)},
    ]
    claims = [
        {"claim": "It serves.", "check": "login", "says": "", "left": {"stack": "gunicorn"}},
        {"claim": "Another is faster.", "left": {"stack": "gunicorn"}, "right": {"stack": "two"}, "at_least": 1},
    ]
    known = {"tiny": publication(parts=parts, claims=claims, rows=[{"stack": "gunicorn", "title": "G", "rps": 10}])}
    for module in (published, reproductions, folder):
        monkeypatch.setattr(module, "publications", lambda: known)


@pytest.mark.servers
def test_parts_are_made_once_or_left_out_and_the_page_says_what_holds(small, tmp_path, capfd):
    out = tmp_path / "again"
    assert reproductions.main(["tiny", "--quick", *UNGUARDED, "-o", str(out)]) == 0
    shown = capfd.readouterr().out
    assert shown.splitlines()[-1] == str(out / "conclusions.md")
    (trial,) = read_run(out / "first").trials
    assert (trial.stack, trial.level, trial.status) == ("gunicorn", 1, "ok")
    record = folder.read(out)
    first, second = record.parts
    assert record.finished_at and first.reason is None and "uwsgi-cache" in second.reason
    (checked,) = json.loads((out / "checks" / "login.json").read_text())["outcomes"]
    assert (checked["check"], checked["ok"]) == ("login", True)
    page = (out / "conclusions.md").read_text("utf-8")
    assert "| It serves. | **holds** |" in page and "| Another is faster. | **not measured** |" in page

    trials = (out / "first" / "trials.jsonl").read_bytes()
    (out / "conclusions.md").unlink()
    assert reproductions.main(["--resume", str(out)]) == 0
    assert (out / "first" / "trials.jsonl").read_bytes() == trials
    assert (out / "conclusions.md").read_text("utf-8") == page
    assert reproductions.main(["tiny", "-o", str(out)]) == 2


def stop_when_begun(out):
    """Signal this process, as a service manager would, as soon as the first part has its folder."""
    deadline = time.monotonic() + 120
    while not (out / "first" / "run.json").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.servers
def test_a_signal_ends_the_run_below_and_it_is_gone_on_with(small, tmp_path, capfd):
    out = tmp_path / "again"
    stopper = threading.Thread(target=stop_when_begun, args=(out,))
    stopper.start()
    assert reproductions.main(["tiny", *UNGUARDED, "-o", str(out)]) == 143
    stopper.join()
    assert capfd.readouterr().err.splitlines()[-1] == f"resume with: python -m reproductions --resume {out}"
    assert folder.read(out).finished_at is None
    assert reproductions.main(["--resume", str(out)]) == 0
    assert folder.read(out).finished_at
    assert [trial.status for trial in read_run(out / "first").trials][-1] == "ok"


@pytest.mark.parametrize(
    "words",
    [[], ["--resume", "nowhere"], ["caching", "--resume", "results"]],
)
def test_a_wrong_command_line_is_one_line(words, capsys):
    assert reproductions.main(words) == 2
    output = capsys.readouterr().err
    assert output.startswith("reproductions: ") and output.count("\n") == 1


def test_the_reason_of_a_part_is_without_the_name_of_the_command(capfd):
    status, reason = reproductions._instrument("run", "nowhere", "--layer", "none", "--dry-run")
    assert status == 2
    assert capfd.readouterr().err.strip() == f"benchapp run: {reason}"
    assert "nowhere" in reason
