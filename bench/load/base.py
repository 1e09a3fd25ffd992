"""What every load tool's adapter takes and gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path

from hdrh.histogram import HdrHistogram

from bench.errors import BenchError
from bench.figures import histogram

# Files of the adapters that are the tools' own scripts and settings.
HERE = Path(__file__).resolve().parent


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
    """

    base_url: str
    paths: tuple[str, ...]
    connections: int
    seconds: int
    threads: int = 1
    timeout_s: int = 10
    keep_alive: bool = True
    rate: int | None = None

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
    """What a load tool measured. None is what it cannot tell.

    problem           what went wrong by the tool's own count and fits no field
    histogram         of the latency, as bench.histogram.encode makes it
    statuses          status -> answers with it; a range where the tool tells no more (`100-399`)
    thirds            requests in the first, second and last third of the load
    requests_dropped  due by the schedule and not sent
    send_delay_p99_ms how late requests left
    """

    duration_s: float
    requests_total: int
    requests_per_second: float
    bytes_per_second: float | None
    latency_mean_ms: float | None
    latency_p50_ms: float | None
    latency_p90_ms: float | None
    latency_p99_ms: float | None
    latency_max_ms: float | None
    errors_connect: int | None
    errors_read: int | None
    errors_timeout: int | None
    responses_not_2xx: int | None
    problem: str | None = None
    latency_p999_ms: float | None = None
    histogram: str | None = None
    statuses: dict[str, int] | None = None
    thirds: tuple[int, int, int] | None = None
    requests_dropped: int | None = None
    send_delay_p99_ms: float | None = None

    def supported(self) -> Figures:
        """These figures without the percentiles that too few requests lie beyond (bench.histogram.enough)."""
        percents = {"latency_p50_ms": 50, "latency_p90_ms": 90, "latency_p99_ms": 99, "latency_p999_ms": 99.9}
        few = {name: None for name, percent in percents.items() if not histogram.enough(self.requests_total, percent)}
        return replace(self, **few)  # type: ignore[arg-type]

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
    percentiles      whether it tells percentiles of the latency
    latency_step_ms  the finest step in which it tells the latency
    can_keep_alive   whether it can reuse connections without miscounting
    aliases          other names it may be asked for by
    install          what installs it
    fallback         whether it comes with this project, to be used where no faster tool is installed
    modes            closed loop, open loop or both
    own_mean         whether it measures the mean latency, rather than dividing time by requests
    connects_aside   whether its latency leaves out the time of connecting
    counts_bytes     whether its bytes a second are all that was received, exactly
    """

    name: str
    programs: tuple[str, ...]
    version: tuple[str, ...]
    url_list: bool
    percentiles: bool
    latency_step_ms: float
    can_keep_alive: bool = True
    aliases: tuple[str, ...] = ()
    install: str = "`make servers` installs it on Debian and Ubuntu"
    fallback: bool = False
    modes: tuple[str, ...] = ("closed",)
    own_mean: bool = True
    connects_aside: bool = False
    counts_bytes: bool = True

    @abstractmethod
    def command(self, program: str, job: Job) -> Command:
        """How to make the load of `job`."""

    @abstractmethod
    def parse(self, stdout: str, stderr: str) -> Figures:
        """The figures in what the tool printed. Raises LoadError when there are none."""

    def threads(self, job: Job) -> int | None:
        """How many processor cores it can keep busy with this job; None when it takes what there is."""
        return job.threads

    def not_figures(self, stdout: str, stderr: str) -> LoadError:
        """The error for output without figures: the last line the tool wrote says most."""
        lines = (stderr.strip() or stdout.strip() or "nothing").splitlines()
        return LoadError(f"{self.name} printed no figures; it said: {lines[-1].strip()[:200]}")


def latencies(found: HdrHistogram) -> dict[str, float | str | None]:
    """The fields of Figures that a histogram gives; all None when nothing was answered."""
    if not found.total_count:
        return dict.fromkeys(LATENCIES)
    percentiles = {
        name: found.get_value_at_percentile(percent) / 1000
        for name, percent in zip(LATENCIES[2:], (50, 90, 99, 99.9), strict=True)
    }
    return {"latency_mean_ms": histogram.mean_ms(found), "histogram": histogram.encode(found), **percentiles}


LATENCIES = ("latency_mean_ms", "histogram", "latency_p50_ms", "latency_p90_ms", "latency_p99_ms", "latency_p999_ms")
