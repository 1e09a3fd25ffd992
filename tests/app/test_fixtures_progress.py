"""The progress of ./manage.py loadfixtures, on a terminal and in a log."""

from __future__ import annotations

import io
import os
import pty
import re

import pytest
from django.db import connection
from rich.console import Console

from fixtures.progress import Progress
from tests.app.loading import start


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_terminal_sees_a_bar_with_rate_and_time_left():
    screen, clock = io.StringIO(), Clock()
    terminal = Console(file=screen, force_terminal=True, color_system=None, width=80)
    progress = Progress(1_020_000, lambda text: None, terminal, clock)
    progress.task("loading posts")
    for _ in range(4):
        clock.now += 1
        progress.advance(127_500)
    progress.clear()
    last = [line for line in screen.getvalue().splitlines() if "loading posts" in line][-1]
    assert re.search(r"loading posts +\S+ +50% 127,500 rows/s 0:00:04", last)


def test_a_log_gets_a_line_now_and_then():
    written, clock = [], Clock()
    progress = Progress(1000, written.append, clock=clock)
    progress.task("loading posts")
    for _ in range(4):
        clock.now += 10
        progress.advance(100)
    progress.clear()
    assert written == ["loading posts\n", "loading posts: 30%, 300 of 1,000 rows, 10 rows/s, 70 s left\n"]


@pytest.mark.servers
def test_the_bar_is_drawn_on_a_real_terminal(sqlite_site):
    connection.close()
    ours, theirs = pty.openpty()
    process = start(sqlite_site, "--rows", "60000", stdout=theirs, stderr=theirs, text=False)
    os.close(theirs)
    seen = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        seen += data
    os.close(ours)
    assert process.wait() == 0
    text = seen.decode()
    assert re.search(r"loading \w+", text) and re.search(r"\d+%", text)
    assert re.search(r"SQLite database \S+ has 60,000 rows of seed 1: .*\r\nchecksum [0-9a-f]{64}\r\n$", text)
