"""What a run says while it works: one line a trial, on a terminal or not."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

from bench.results import Trial


class Progress:
    """Counts trials and guesses the time left from those of this invocation."""

    def __init__(self, cases: int, rounds: int, remaining: int, made: Iterable[Trial] = ()):
        self._cases = cases
        self._rounds = rounds
        self._remaining = remaining
        self._made = 0
        self._numbers: dict[int, dict[str, int]] = {}
        self._began = time.monotonic()
        for trial in made:
            self._number(trial)

    def trial(self, trial: Trial) -> None:
        """Say how a trial went."""
        self._made += 1
        self._remaining -= 1
        say(
            f"round {trial.round} of {self._rounds}, case {self._number(trial)} of {self._cases}: "
            f"{trial.stack}, layer {trial.layer}, {trial.workload}, {trial.level_connections} connections: "
            f"{outcome(trial)}; {self._left()}"
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


def outcome(trial: Trial) -> str:
    """A trial in a few words."""
    if trial.status == "failed":
        return f"FAILED: {trial.reason}" + (f" (see {trial.log})" if trial.log else "")
    words = f"{trial.requests_per_second:,.0f} requests/s"
    return words if trial.latency_p99_ms is None else f"{words}, p99 {trial.latency_p99_ms:,.1f} ms"


def duration(seconds: float) -> str:
    """Seconds as a person says them: 40 s, 3 min, 1 h 20 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def say(line: str) -> None:
    """One line, seen at once."""
    print(line, file=sys.stdout, flush=True)
