"""The input and the output of every load tool's adapter."""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hdrh.histogram import HdrHistogram

from bench.errors import BenchError
from bench.figures import histogram

# Files of the adapters that are the tools' own scripts and settings.
HERE = Path(__file__).resolve().parent
PERCENTILES = {"latency_p50_ms": 50, "latency_p90_ms": 90, "latency_p99_ms": 99, "latency_p999_ms": 99.9}


class LoadError(BenchError):
    """A load tool printed something that holds no figures."""


@dataclass(frozen=True)
class Job:
    """A closed loop: each of `connections` sends its next request when it has its answer, for `seconds`.

    With a `rate` it is an open loop: that many requests a second are due on a schedule whatever comes back, on as many
    connections as it takes up to `connections`.

    base_url    http://127.0.0.1:8000, without a path
    paths       requested in this order, over and over, by every connection
    threads     how many processor cores the tool may keep busy, where it has such an option
    timeout_s   seconds after which a request counts as unanswered
    keep_alive  ask for connections to be reused
    rate        requests due a second; None in a closed loop
    times       when each is due instead, in seconds from the start; only the engine's open loop has them
    headers     more header lines for each path, none where empty; only the engine sends them
    mark        what the engine's open loop looks for in each answer, to log its requests (bench.load.visits)
    """

    base_url: str
    paths: tuple[str, ...]
    connections: int
    seconds: int
    threads: int = 1
    timeout_s: int = 10
    keep_alive: bool = True
    rate: int | None = None
    times: tuple[float, ...] = ()
    headers: tuple[str, ...] = ()
    mark: str = ""

    def __post_init__(self) -> None:
        if not self.paths or any(not path.startswith("/") or len(path.split()) != 1 for path in self.paths):
            raise ValueError(f"paths must be non-empty and each begin with / and hold no space: {self.paths!r}")
        if min(self.connections, self.seconds, self.threads, self.timeout_s) < 1:
            raise ValueError("connections, seconds, threads and timeout_s must be at least 1")
        if self.rate is not None and self.rate < 1:
            raise ValueError("rate must be at least 1")


@dataclass(frozen=True)
class Command:
    """What to run: `files` are written first, where `argv` then runs with the environment `env`."""

    argv: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Figures:
    """What a load tool measured. None: the tool does not report it.

    problem           an error that the tool counted and that fits no field
    histogram         of the latency, as bench.histogram.encode makes it
    statuses          status -> answers with it; a range where the tool reports no more (`100-399`)
    thirds            requests in the first, second and last third of the load
    requests_dropped  due by the schedule and not sent
    send_delay_p99_ms how late requests left
    """

    duration_s: float
    requests_total: int
    requests_per_second: float
    bytes_per_second: float | None = None
    latency_mean_ms: float | None = None
    latency_p50_ms: float | None = None
    latency_p90_ms: float | None = None
    latency_p99_ms: float | None = None
    latency_p999_ms: float | None = None
    latency_max_ms: float | None = None
    errors_connect: int | None = None
    errors_read: int | None = None
    errors_timeout: int | None = None
    responses_not_2xx: int | None = None
    problem: str | None = None
    histogram: str | None = None
    statuses: dict[str, int] | None = None
    thirds: tuple[int, int, int] | None = None
    requests_dropped: int | None = None
    send_delay_p99_ms: float | None = None

    def supported(self) -> Figures:
        """These figures without the percentiles that too few requests lie beyond (bench.histogram.enough)."""
        total = self.requests_total
        few: dict[str, Any] = {name: None for name, at in PERCENTILES.items() if not histogram.enough(total, at)}
        return replace(self, **few)

    def failure(self) -> str | None:
        """Why these figures are not a measurement of the site, or None when they are."""
        counts = (
            (self.responses_not_2xx, "answers with a status outside 200 to 299"),
            (self.errors_connect, "connections that could not be made"),
            (self.errors_read, "connections that broke before the answer was whole"),
            (self.errors_timeout, "requests without an answer in time"),
        )
        found = [f"{count} {what}" for count, what in counts if count]
        if self.problem:
            found.append(self.problem)
        if not found and not self.requests_total:
            found.append(f"no answer at all in {self.duration_s:.1f} s")
        return ", ".join(found) or None


class Tool(ABC):
    """A load tool.

    programs         names it may be installed under
    version          what to add to the program to make it print its version
    url_list         whether it can request many URLs in turn
    can_keep_alive   whether it can reuse connections without miscounting
    fallback         whether it comes with this project, to be used where no faster tool is installed
    mode             closed or open loop
    counts_bytes     whether its bytes a second are all that was received, exactly
    """

    name: str
    programs: tuple[str, ...]
    version: tuple[str, ...]
    url_list: bool
    can_keep_alive: bool = True
    fallback: bool = False
    mode: str = "closed"
    counts_bytes: bool = True

    @abstractmethod
    def command(self, program: str, job: Job) -> Command:
        """How to make the load of `job`."""

    def parse(self, stdout: str, stderr: str) -> Figures:
        """The figures in what the tool printed. Raises LoadError when there are none."""
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
        """How many processor cores it can keep busy with this job; None when it takes what there is."""
        return job.threads

    def only_url(self, job: Job) -> str:
        """The URL of a job for a tool without a list of URLs. Raises ValueError when the job has several."""
        if len(set(job.paths)) != 1:
            raise ValueError(f"{self.name} loads a single URL")
        return job.base_url + job.paths[0]


def latencies(found: HdrHistogram, max_ms: float | None) -> dict[str, Any]:
    """The fields of Figures that a histogram gives; none when nothing was answered.

    A percentile is the upper end of its bucket, so none is above the exact maximum, where that is known.
    """
    if not found.total_count:
        return {}
    most = math.inf if max_ms is None else max_ms
    percentiles = {name: min(found.get_value_at_percentile(q) / 1000, most) for name, q in PERCENTILES.items()}
    return {"latency_mean_ms": histogram.mean_ms(found), "histogram": histogram.encode(found), **percentiles}


def number(pattern: str, text: str) -> float | None:
    """The number that the pattern's group finds in a line of the text, or None."""
    match = re.search(pattern, text, re.MULTILINE)
    return float(match[1]) if match else None


def last_object(stdout: str) -> dict[str, Any]:
    """The last line of the output that is a JSON object. Raises IndexError or ValueError without one."""
    found: dict[str, Any] = json.loads([line for line in stdout.splitlines() if line.startswith("{")][-1])
    return found
