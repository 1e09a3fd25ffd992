"""What stops a command that measures: one line each, with what to do next."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import pytest

from bench.cli.stops import until_stopped
from bench.errors import BenchError, GlobalFault, MachineBusy

FOLDER = Path("results/x")
WORDS = {"stopped": "it is kept", "busy": "wait"}


@pytest.mark.parametrize(
    ("error", "words", "message"),
    [
        (GlobalFault("it is gone"), {}, "stopped: it is gone; fix it and resume"),
        (MachineBusy("3 trials were voided"), {}, "stopped: 3 trials were voided and resume"),
        (MachineBusy("3 trials were voided"), WORDS, "stopped: 3 trials were voided and wait"),
        (OSError(errno.ENOSPC, "x"), WORDS, "stopped: results/x: No space left on device; make room and resume"),
    ],
)
def test_a_fault_is_one_line_with_what_to_do_next(error, words, message):
    def go(interrupts):
        raise error

    with pytest.raises(BenchError) as found:
        until_stopped("run", FOLDER, go, "resume", **words)
    assert str(found.value) == message


@pytest.mark.parametrize(("words", "then"), [({}, "resume"), (WORDS, "it is kept")])
def test_a_signal_is_an_exit_status_and_a_line(words, then, capsys):
    def go(interrupts):
        os.kill(os.getpid(), signal.SIGTERM)
        return 0

    assert until_stopped("run", FOLDER, go, "resume", **words) == 143
    assert capsys.readouterr().err == f"bench run: SIGTERM; {then}\n"


def test_another_error_is_not_hidden():
    def go(interrupts):
        raise PermissionError(errno.EACCES, "no")

    with pytest.raises(PermissionError):
        until_stopped("run", FOLDER, go, "resume")


def test_what_ends_by_itself_has_its_own_status():
    assert until_stopped("run", FOLDER, lambda interrupts: 1, "resume") == 1
