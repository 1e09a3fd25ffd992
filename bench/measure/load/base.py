"""The input and the output of every load tool's adapter."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.errors import BenchError
from bench.measure.load.openloop.job import LoadJob
from bench.measure.records.trials import Errors, TrialFigures
from bench.measure.stats import histogram
from bench.words import plural

# Files of the adapters that are the tools' own scripts and settings.
HERE = Path(__file__).resolve().parent
PERCENTILES = {"latency_p50_ms": 50, "latency_p99_ms": 99}


class LoadError(BenchError):
    """The output of a load tool has no figures."""


@dataclass(frozen=True)
class Command:
    """A command: write `files` first, then run `argv` in their folder with the environment `env`."""

    argv: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Figures(Errors, TrialFigures):
    """Figures of a load tool, as recorded in a trial. None: not reported by the tool.

    Only an open loop has percentiles of the latency: in a saturated closed loop percentiles mean nothing to a visitor,
    and the mean follows from connections and rate (Little's law).

    problem  an error counted by the tool that fits no field
    """

    problem: str | None = None

    def supported(self) -> Figures:
        """These figures without percentiles that have too few requests beyond them (`stats.histogram.enough`)."""
        total = self.requests_total
        few: dict[str, Any] = {name: None for name, at in PERCENTILES.items() if not histogram.enough(total, at)}
        return replace(self, **few)

    def failure(self) -> str | None:
        """The reason why these figures are not a measurement of the site, or None."""
        counts = (
            (self.responses_not_2xx, "response", "with a status outside 200 to 299"),
            (self.errors_connect, "connection", "that could not be made"),
            (self.errors_read, "connection", "that broke before the response was complete"),
            (self.errors_timeout, "request", "without a response in time"),
        )
        failures = [f"{plural(count, thing)} {what}" for count, thing, what in counts if count]
        if self.problem:
            failures.append(self.problem)
        if not failures and not self.requests_total:
            failures.append(f"no response in {self.duration_s:.1f} s; a slow site needs a longer --duration")
        return ", ".join(failures) or None


class Tool(ABC):
    """A load tool.

    programs         possible names of the program
    version          arguments to print the version
    url_list         whether the tool can request many URLs in turn
    can_keep_alive   whether the tool can reuse connections without miscounting
    fallback         whether the tool is part of this project, for use if no faster tool is installed
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
    def command(self, program: str, job: LoadJob) -> Command:
        """The command for the load of `job`."""

    def parse(self, stdout: str, stderr: str) -> Figures:
        """The figures in the tool's output. Raises LoadError if the output has no figures."""
        try:
            return self.figures(stdout)
        except (LookupError, ValueError, TypeError, ZeroDivisionError, AttributeError):
            # The last line that the tool wrote says most.
            lines = (stderr.strip() or stdout.strip() or "nothing").splitlines()
            message = lines[-1].strip()[:200]
            raise LoadError(f"{self.name} printed no figures; it said: {message}") from None

    @abstractmethod
    def figures(self, stdout: str) -> Figures:
        """The figures in the tool's output. `parse` treats any exception as output without figures."""

    def threads(self, job: LoadJob) -> int | None:
        """Number of processor cores kept busy with this job; None if unlimited."""
        return job.threads


def number(pattern: str, text: str) -> float | None:
    """The number in the pattern's group, from a line of the text, or None."""
    match = re.search(pattern, text, re.MULTILINE)
    if not match:
        return None
    return float(match[1])


def last_object(stdout: str) -> dict[str, Any]:
    """The last line of the output with a JSON object. Raises IndexError or ValueError without one."""
    content: dict[str, Any] = json.loads([line for line in stdout.splitlines() if line.startswith("{")][-1])
    return content
