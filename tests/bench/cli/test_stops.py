"""What stops a command that measures: one line each, with what to do next."""

from __future__ import annotations

import errno
import os
import signal
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.cli import stops
from bench.errors import BenchError, GlobalFault, MachineBusy

RESUME = "resume with: python -m bench run --resume results/x"


@pytest.fixture
def until_stopped(monkeypatch):
    """The exit status of a command that makes a run in a folder."""
    monkeypatch.setattr(stops, "resume_command", lambda *_: "python -m bench run --resume results/x")
    folder = SimpleNamespace(directory=Path("results/x"), locked=nullcontext)
    return lambda go, **words: stops.made("run", SimpleNamespace(folder=folder, info=None), go, **words)


@pytest.mark.parametrize(
    ("error", "words", "message"),
    [
        (GlobalFault("it is gone"), {}, "stopped: it is gone; fix it and {resume}"),
        (GlobalFault("it is gone"), {"also": " --write"}, "stopped: it is gone; fix it and {resume} --write"),
        (MachineBusy("3 were voided"), {}, "stopped: 3 were voided and {resume}"),
        (
            MachineBusy("3 were voided"),
            {"busy": "or wait"},
            "stopped: 3 were voided and {resume}, or wait",
        ),
        (OSError(errno.ENOSPC, "x"), {}, "stopped: results/x: No space left on device; make room and {resume}"),
    ],
)
def test_a_fault_is_one_line_with_what_to_do_next(until_stopped, error, words, message):
    def go(interrupts):
        raise error

    with pytest.raises(BenchError) as found:
        until_stopped(go, **words)
    assert str(found.value) == message.format(resume=RESUME)


def test_a_signal_is_an_exit_status_and_a_line(until_stopped, capsys):
    assert until_stopped(lambda interrupts: os.kill(os.getpid(), signal.SIGTERM)) == 143
    assert capsys.readouterr().err == f"bench run: SIGTERM; {RESUME}\n"


def test_another_error_is_not_hidden(until_stopped):
    def go(interrupts):
        raise PermissionError(errno.EACCES, "no")

    with pytest.raises(PermissionError):
        until_stopped(go)


def test_what_ends_by_itself_has_its_own_status(until_stopped):
    assert until_stopped(lambda interrupts: 1) == 1
