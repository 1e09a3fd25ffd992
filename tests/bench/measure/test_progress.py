"""What a run says while it works: plain lines everywhere, and on a terminal a live line below them."""

from __future__ import annotations

import dataclasses
import io

import pytest

from bench.measure import progress
from bench.measure.progress import Printer, RunProgress
from bench.results.records import Case
from tests.bench.report.report_folder import failed

CASE = Case("one~none~home~unlimited~sqlite", "one", "none", "home", "unlimited", "sqlite")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    return Terminal()


def run_progress(printer, **changes):
    made = RunProgress(printer, **{"cases": 2, "rounds": 3, "remaining": 6, **changes})
    made.start_trial(CASE, 16, "closed")
    return made


def test_a_terminal_shows_the_rate_of_the_trial_under_way(terminal):
    with Printer(terminal) as printer:
        run_progress(printer).live(2.0, 5000)
        assert terminal.getvalue().endswith("one, layer none, home, 16 connections: 2 s, 2,500 requests/s")
        printer.say("round 1")
        last = terminal.getvalue().splitlines()[-1]
        assert last.endswith("\x1b[2Kround 1"), "the live line is erased before a line that stays"


def test_a_live_line_is_cut_to_the_terminal(terminal):
    with Printer(terminal, "prefix: ") as printer:
        printer.show("x" * 100)
        shown = terminal.getvalue().split("prefix: ")[1]
        assert shown == "x" * 51 + "…"


def test_the_live_line_is_removed_at_the_end(terminal):
    with Printer(terminal) as printer:
        printer.show("something")
    assert terminal.getvalue().endswith("\x1b[2K")


@pytest.mark.parametrize("name", ["FORCE_COLOR", "TTY_COMPATIBLE"])
def test_a_file_gets_plain_lines_alone(monkeypatch, name):
    monkeypatch.setenv(name, "1")
    stream = io.StringIO()
    with Printer(stream) as printer:
        run_progress(printer).live(2.0, 5000)
        printer.say("a [bold]line[/] that :smile: is not touched, " + "and is not wrapped " * 10)
    assert stream.getvalue() == "a [bold]line[/] that :smile: is not touched, " + "and is not wrapped " * 10 + "\n"


def test_a_trial_is_one_plain_line():
    stream = io.StringIO()
    counted = run_progress(Printer(stream), remaining=1)
    counted.trial(failed(CASE, 16, 2, "503 answers"))
    assert stream.getvalue() == (
        "round 2 of 3, case 1 of 2: one, layer none, home, 16 connections: FAILED: 503 answers "
        "(see raw/one~none~home~unlimited~sqlite~c16~r2/server.log); done\n"
    )


def test_a_size_is_named_where_there_is_one():
    bronze = dataclasses.replace(CASE, size="bronze")
    said = [progress.case_words(each) for each in (CASE, bronze)]
    assert said == ["one, layer none, home", "one, layer none, home, bronze"]


@pytest.mark.parametrize(("seconds", "words"), [(40, "40 s"), (170, "3 min"), (4800, "1 h 20 min")])
def test_durations_in_words(seconds, words):
    assert progress.duration(seconds) == words
