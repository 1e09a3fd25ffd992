"""Output of a run in progress: plain lines everywhere, and on a terminal a live line below."""

from __future__ import annotations

import io
import math
import re
import sys
import threading
from dataclasses import replace

import pytest

from bench.measure.records.capacity import Visits
from bench.measure.records.records import CaseRecord
from bench.measure.run import plan, progress
from bench.measure.run.outlook import Outlook
from bench.measure.run.progress import RunProgress
from bench.measure.run.verified import Verified
from bench.measure.stats.rate_search import RATES, Limit
from bench.printer import Printer, aside
from tests.bench.measure.records import run_data
from tests.bench.measure.run.test_plan import case
from tests.waiting import until

CASE = CaseRecord("one~none~home~unlimited~sqlite", "one", "none", "home", "unlimited", "sqlite")
LIMIT = Limit("p95", 200.0)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    # Keep elapsed time out of the lines.
    monkeypatch.setattr("bench.printer.SILENT_S", math.inf)
    monkeypatch.setattr("bench.printer.REFRESHES_PER_S", 0.001)
    return Terminal()


def begin(printer):
    (item,) = plan.round_of([case("one")], [16], 1, 1)
    progress_of(printer).begin(item)


def progress_of(printer):
    return RunProgress(printer, run_data.INFO, Outlook(run_data.INFO.plan, (), Verified()))


@pytest.mark.parametrize("of_thread", [False, True])
def test_a_line_of_another_part_stands_above_the_live_line(terminal, monkeypatch, of_thread):
    monkeypatch.setattr(sys, "stderr", terminal)
    with Printer(terminal) as printer:
        printer.show("starting")
        if of_thread:
            timer = threading.Timer(0, aside, ["waiting for it"])
            timer.start()
            timer.join()
        else:
            aside("waiting for it")
        *_, line, live = terminal.getvalue().splitlines()
        assert line.endswith("\x1b[2Kwaiting for it"), "the live line is erased before the other"
        assert live.endswith("starting"), "and written again below"
    written = len(terminal.getvalue())
    aside("later")
    assert terminal.getvalue()[written:] == "later\n"


def test_a_line_for_a_file_stays_out_of_the_live_line(terminal, monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    with Printer(terminal) as printer:
        printer.show("starting")
        aside("waiting for it")
    assert file.getvalue() == "waiting for it\n"
    assert "waiting" not in terminal.getvalue()


def test_a_terminal_shows_the_trial_under_way(terminal):
    with Printer(terminal) as printer:
        begin(printer)
        assert terminal.getvalue().endswith("one, layer none, home, 16 connections")
        printer.say("round 1")
        last = terminal.getvalue().splitlines()[-1]
        assert last.endswith("\x1b[2Kround 1"), "the live line is erased before a line that stays"


def test_a_live_line_is_cut_to_the_terminal_and_removed_at_the_end(terminal):
    with Printer(terminal, "prefix: ") as printer:
        printer.show("x" * 100)
        shown = terminal.getvalue().split("prefix: ")[1]
        assert shown == "x" * 51 + "…"
    assert terminal.getvalue().endswith("\x1b[2K")


def test_a_live_line_that_stays_says_for_how_long(terminal, monkeypatch):
    monkeypatch.setattr("bench.printer.SILENT_S", 0.0)
    with Printer(terminal) as printer:
        printer.show("starting one")
        assert re.search(r"starting one, \d+ s$", terminal.getvalue())
        printer.show("")
        assert terminal.getvalue().endswith("\x1b[2K"), "no words remove the line"


def test_a_live_line_is_drawn_again_while_the_command_works(terminal, monkeypatch):
    monkeypatch.setattr("bench.printer.REFRESHES_PER_S", 100)
    with Printer(terminal) as printer:
        printer.show("starting one")
        until(lambda: terminal.getvalue().count("starting one") > 2, "the line is drawn again")


@pytest.mark.parametrize(("no_color", "red"), [("", True), ("1", False)])
def test_colours_are_for_terminals_that_want_them(terminal, monkeypatch, no_color, red):
    monkeypatch.setenv("NO_COLOR", no_color)
    for stream in (terminal, file := io.StringIO()):
        Printer(stream).say("one with layer none: FAIL")
    assert ("\x1b[31mFAIL" in terminal.getvalue()) is red
    assert file.getvalue() == "one with layer none: FAIL\n"


@pytest.mark.parametrize("name", ["FORCE_COLOR", "TTY_COMPATIBLE"])
def test_a_file_gets_plain_lines_only(monkeypatch, name):
    monkeypatch.setenv(name, "1")
    stream = io.StringIO()
    with Printer(stream) as printer:
        begin(printer)
        printer.say("a [bold]line[/] that :smile: is not touched, " + "and is not wrapped " * 10)
    assert stream.getvalue() == "a [bold]line[/] that :smile: is not touched, " + "and is not wrapped " * 10 + "\n"


def test_a_size_is_named_if_there_is_one():
    bronze = replace(CASE, size="bronze")
    words = [progress.case_words(each) for each in (CASE, bronze)]
    assert words == ["one, layer none, home", "one, layer none, home, bronze"]


def test_a_trial_of_a_closed_loop_is_printed_without_a_latency():
    closed = run_data.changed(run_data.TRIAL, requests_per_second=100.0, latency_p99_ms=7.0)
    assert progress.outcome(closed) == "100 requests/s"
    at_a_rate = replace(closed, level_connections=None, rate_requested=100.0)
    assert progress.outcome(at_a_rate) == "100 requests/s, p99 7.0 ms"


def test_a_capacity_in_words():
    climb = [run_data.at_rate(RATES[-1])]
    words = "100,000 requests/s (100,000 or more; one round) with p95 within 200 ms"
    assert progress.capacity_words(climb, LIMIT, None) == words
    assert progress.capacity_words([run_data.at_rate(1, 900)], LIMIT, Visits(1, 1)) == "no rate holds p95 within 200 ms"
