"""The command line in this process: a second faster than in one of its own."""

from __future__ import annotations

import signal
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from bench import paths
from bench.cli import main

Command = Callable[..., CompletedProcess]


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run `python -m bench` with these words in the checkout; gives its status and what it printed."""
    monkeypatch.chdir(paths.PROJECT)

    def run(*words: str) -> CompletedProcess:
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        capsys.readouterr()
        try:
            status = main.main([str(word) for word in words])
        except SystemExit as stop:
            status = stop.code
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        return CompletedProcess(words, status, *capsys.readouterr())

    return run
