"""The input and the output of every load tool's adapter."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.errors import BenchError
from bench.measure.load.openloop.job import Job
from bench.measure.records.trials import Errors, TrialFigures
from bench.measure.stats import histogram
from bench.words import plural

# Files of the adapters that are the tools' own scripts and settings.
HERE = Path(__file__).resolve().parent
PERCENTILES = {"latency_p50_ms": 50, "latency_p99_ms": 99}


class LoadError(BenchError):
    """A load tool printed something that holds no figures."""


@dataclass(frozen=True)
class Command:
    """What to run: `files` are written first, where `argv` then runs with the environment `env`."""

    argv: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Figures(Errors, TrialFigures):
    """What a load tool measured, as a trial records it. None: the tool does not report it.

    Only an open loop has percentiles of the latency: a saturated closed loop has none that a visitor would know, and
    its mean follows from connections and rate (Little's law).

    problem  an error that the tool counted and that fits no field
    """

    problem: str | None = None

    def supported(self) -> Figures:
        """These figures without the percentiles that too few requests lie beyond (`stats.histogram.enough`)."""
        total = self.requests_total
        few: dict[str, Any] = {name: None for name, at in PERCENTILES.items() if not histogram.enough(total, at)}
        return replace(self, **few)

    def failure(self) -> str | None:
        """Why these figures are not a measurement of the site, or None if they are."""
        counts = (
            (self.responses_not_2xx, "answer", "with a status outside 200 to 299"),
            (self.errors_connect, "connection", "that could not be made"),
            (self.errors_read, "connection", "that broke before the answer was whole"),
            (self.errors_timeout, "request", "without an answer in time"),
        )
        found = [f"{plural(count, thing)} {what}" for count, thing, what in counts if count]
        if self.problem:
            found.append(self.problem)
        if not found and not self.requests_total:
            found.append(f"no answer at all in {self.duration_s:.1f} s; a slow site needs a longer --duration")
        return ", ".join(found) or None


class Tool(ABC):
    """A load tool.

    programs         names it may be installed under
    version          what to add to the program to make it print its version
    url_list         whether it can request many URLs in turn
    can_keep_alive   whether it can reuse connections without miscounting
    fallback         whether it comes with this project, to be used if no faster tool is installed
    mode             closed or open loop
    """

    name: str
    programs: tuple[str, ...]
    version: tuple[str, ...]
    url_list: bool
    can_keep_alive: bool = True
    fallback: bool = False
    mode: str = "closed"

    @abstractmethod
    def command(self, program: str, job: Job) -> Command:
        """How to make the load of `job`."""

    def parse(self, stdout: str, stderr: str) -> Figures:
        """The figures in what the tool printed. Raises LoadError if there are none."""
        try:
            return self.figures(stdout)
        except (LookupError, ValueError, TypeError, ZeroDivisionError, AttributeError):
            # The last line that the tool wrote says most.
            lines = (stderr.strip() or stdout.strip() or "nothing").splitlines()
            said = lines[-1].strip()[:200]
            raise LoadError(f"{self.name} printed no figures; it said: {said}") from None

    @abstractmethod
    def figures(self, stdout: str) -> Figures:
        """The figures in the tool's output. Whatever `parse` catches means that it holds none."""

    def threads(self, job: Job) -> int | None:
        """How many processor cores it can keep busy with this job; None if it takes what there is."""
        return job.threads


def number(pattern: str, text: str) -> float | None:
    """The number that the pattern's group finds in a line of the text, or None."""
    match = re.search(pattern, text, re.MULTILINE)
    return float(match[1]) if match else None


def last_object(stdout: str) -> dict[str, Any]:
    """The last line of the output that is a JSON object. Raises IndexError or ValueError without one."""
    found: dict[str, Any] = json.loads([line for line in stdout.splitlines() if line.startswith("{")][-1])
    return found
