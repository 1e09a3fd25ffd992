"""What a run says while it works: one line a trial, and on a terminal the rate of the one under way."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable

from bench.catalog.sizes import UNLIMITED
from bench.results.records import Case, Trial

# To the beginning of the terminal's line, and empty it.
CLEAR = "\r\x1b[K"


class Progress:
    """Counts trials and guesses the time left from those of this invocation."""

    def __init__(self, cases: int, rounds: int, remaining: int, made: Iterable[Trial] = ()):
        self._cases = cases
        self._rounds = rounds
        self._remaining = remaining
        self._made = 0
        self._numbers: dict[int, dict[str, int]] = {}
        self._began = time.monotonic()
        self._under_way = ""
        for trial in made:
            self._number(trial)

    def began(self, words: str) -> None:
        """A trial begins: `words` say which."""
        self._under_way = words

    def live(self, seconds: float, requests: int) -> None:
        """How far the trial under way is: seconds since its load began, requests so far. Shown on a terminal alone."""
        if sys.stdout.isatty() and seconds > 0:
            words = f"{self._under_way}: {seconds:.0f} s, {requests / seconds:,.0f} requests/s"
            width = shutil.get_terminal_size().columns
            print(f"{CLEAR}{words[: width - 1]}", end="", flush=True)

    def trial(self, trial: Trial) -> None:
        """Say how a trial went."""
        self._made += 1
        self._remaining -= 1
        say(
            f"round {trial.round} of {self._rounds}, case {self._number(trial)} of {self._cases}: "
            f"{case_words(trial)}, {level_words(trial.level, trial.mode)}: {outcome(trial)}; {self._left()}"
        )

    def _number(self, trial: Trial) -> int:
        """Which case of its round it is, in the order in which they are measured."""
        numbers = self._numbers.setdefault(trial.round, {})
        return numbers.setdefault(trial.case_id, len(numbers) + 1)

    def _left(self) -> str:
        if not self._remaining:
            return "done"
        seconds = (time.monotonic() - self._began) / self._made * self._remaining
        return f"time left ~{duration(seconds)}"


def case_words(case: Case | Trial) -> str:
    """A case, or that of a trial, as people say it; a size only where there is one."""
    size = "" if case.size == UNLIMITED else f", {case.size}"
    return f"{case.stack}, layer {case.layer}, {case.workload}{size}"


def level_words(level: int, mode: str) -> str:
    """A level as people say it."""
    return f"{level:,} connections" if mode == "closed" else f"{level:,} requests/s due"


def outcome(trial: Trial) -> str:
    """A trial in a few words."""
    if trial.status == "failed":
        return f"FAILED: {trial.reason}" + (f" (see {trial.log})" if trial.log else "")
    words = f"{trial.requests_per_second:,.0f} requests/s"
    if trial.latency_p99_ms is not None:
        words += f", p99 {trial.latency_p99_ms:,.1f} ms"
    return words if trial.status == "ok" else f"{words}, VOIDED: {trial.reason}"


def duration(seconds: float) -> str:
    """Seconds as a person says them: 40 s, 3 min, 1 h 20 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def say(line: str) -> None:
    """One line, seen at once, in place of what a terminal shows of a trial under way."""
    print(f"{CLEAR if sys.stdout.isatty() else ''}{line}", file=sys.stdout, flush=True)
