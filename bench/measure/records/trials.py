"""The record of a trial, in its parts; one trial a line.

``None`` means "not measured". A failed trial has a reason and no figures, never a zero. A discarded trial has untrusted
figures and the reason: no median, interval or ratio may use these figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from bench.means import means
from bench.measure.records.records import ResultsError
from bench.verify.hosts.host_costs import HostCosts

# The guard whose finding may be over when the trial is made again.
INTERFERENCE = "interference"
# From so many times the mean of the workers on, the load was spread unevenly.
UNEVEN = 1.3
Samples = tuple[tuple[float, int], ...]
Count = TypeVar("Count", int, float)


@dataclass(frozen=True, kw_only=True)
class TrialIdentity:
    """Identity of a trial, and settings of its load."""

    trial_id: Annotated[
        str,
        means(
            "Name of the trial, and of its directory under raw/. A repeated trial has a line for each time; the last "
            "one counts."
        ),
    ]
    case_id: Annotated[str, means("The case it measures.")]
    stack: Annotated[str, means("Name of the stack.")]
    layer: Annotated[str, means("Name of the layer.")]
    workload: Annotated[str, means("Name of the workload.")]
    size: Annotated[str, means("Name of the resource limit.")]
    database: Annotated[str, means("Database behind the site.")]
    level_connections: Annotated[
        int | None, means("Connections the load tool kept busy, each waiting for its response; null in an open loop.")
    ]
    rate_requested: Annotated[float | None, means("Requests a second due by the schedule; null in a closed loop.")] = (
        None
    )
    round: Annotated[int, means("Round of the run, from 1.")]
    started_at: Annotated[str, means("When the timed load began, ISO 8601 with offset.")]
    tool: Annotated[str, means("Name of the load tool.")]
    keep_alive: Annotated[
        bool | None,
        means("True if the load tool requested keep-alive connections; a server may still close them."),
    ] = None

    @property
    def level(self) -> int:
        """Connections of a closed loop or requests a second of an open one: the level in the plan."""
        if self.level_connections is not None:
            return self.level_connections
        return round(self.rate_requested or 0)

    @property
    def mode(self) -> str:
        """`closed` or `open`."""
        if self.level_connections is not None:
            return "closed"
        return "open"


@dataclass(frozen=True, kw_only=True)
class TrialFigures:
    """Figures by the load tool in the timed load."""

    duration_s: Annotated[float, means("Seconds the timed load lasted.")]
    requests_total: Annotated[int, means("Responses received in the timed load.")]
    requests_per_second: Annotated[float, means("Responses received a second.")]
    bytes_per_second: Annotated[float | None, means("Bytes received a second, as the load tool counts them.")] = None
    latency_p50_ms: Annotated[
        float | None,
        means(
            "Half of the responses came within this many milliseconds of their intended start; null in a closed loop."
        ),
    ] = None
    latency_p99_ms: Annotated[
        float | None, means("99 in 100 responses came within this many milliseconds of it; null in a closed loop.")
    ] = None
    latency_max_ms: Annotated[float | None, means("The longest request, in milliseconds.")] = None
    histogram: Annotated[
        str | None,
        means("HDR histogram of an open loop's latency in microseconds, compressed (V2), in base64."),
    ] = None
    thirds: Annotated[
        tuple[float, float, float] | None,
        means("Responses in the first, second and last third of the timed load."),
    ] = None
    requests_dropped: Annotated[
        int | None, means("Requests due by the schedule that the load tool did not send; null in a closed loop.")
    ] = None
    send_delay_p99_ms: Annotated[
        float | None, means("99 in 100 requests were sent within this many milliseconds of their intended start.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class Errors:
    """Failed requests in the timed load; also of a trial that failed because of them."""

    errors_connect: Annotated[int | None, means("Connections that could not be made.")] = None
    errors_read: Annotated[int | None, means("Connections that broke before the response was whole.")] = None
    errors_timeout: Annotated[int | None, means("Requests without a response in the load tool's time limit.")] = None
    responses_not_2xx: Annotated[int | None, means("Responses with a status outside 200 to 299.")] = None
    statuses: Annotated[dict[str, int] | None, means("Status -> responses that had it.")] = None
    responses_before_failure: Annotated[
        int | None, means("Right responses before the load failed; not a throughput.")
    ] = None

    @property
    def total(self) -> int:
        """Counted requests without a right response."""
        broken = (self.errors_connect, self.errors_read, self.errors_timeout)
        return sum(count or 0 for count in (*broken, self.responses_not_2xx))


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Memory, CPU time and processes of servers and services in the timed load."""

    memory: Annotated[
        dict[str, Samples] | None,
        means(
            "Server or service -> pairs of seconds since the load began and bytes of memory (proportional set "
            "size, PSS) summed over its process tree; empty when it could not be read."
        ),
    ]
    memory_peak_bytes: Annotated[
        dict[str, int | None] | None, means("Server or service -> largest PSS seen, in bytes.")
    ]
    memory_slope_bytes_per_s: Annotated[
        dict[str, float | None] | None,
        means("Server or service -> how fast its PSS grew in the timed load, in bytes/s."),
    ] = None
    cpu_seconds: Annotated[
        dict[str, float | None] | None,
        means("Server or service -> CPU seconds, user and system, its process tree used in the timed load."),
    ]
    processes: Annotated[
        dict[str, int | None] | None, means("Server or service -> the largest number of processes seen in its tree.")
    ]
    worker_cpu_seconds: Annotated[
        tuple[float, ...] | None,
        means("CPU seconds of each worker process of the application server in the timed load, the busiest first."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Condition:
    """The deployment before, during and after the load; also of a failed trial."""

    time_to_ready_s: Annotated[float | None, means("Seconds from starting the deployment until it responded.")] = None
    memory_idle_bytes: Annotated[
        dict[str, int | None] | None,
        means("Server or service -> PSS when the deployment had just become ready, in bytes."),
    ] = None
    queries_per_request: Annotated[
        float | None, means("Database queries of a request of the workload, on average; 0 if a cache responds.")
    ] = None
    restarts: Annotated[
        int | None, means("Worker processes of servers that ended and were replaced during the timed load.")
    ] = None
    oom_kills: Annotated[
        int | None, means("Processes of the deployment killed for lack of memory during the trial.")
    ] = None
    database_connections_peak: Annotated[
        int | None,
        means(
            "Largest number of client connections to the site's database seen in the timed load; only on PostgreSQL."
        ),
    ] = None
    database_connections_left: Annotated[
        int | None, means("Client connections to the site's database that were left 5 s after the load.")
    ] = None
    database_connections_limit: Annotated[
        int | None, means("Client connections that the database allows, all of its programs together.")
    ] = None
    hosts: Annotated[
        dict[str, HostCosts] | None, means("Host of the inventory -> its costs in the timed load; null on one host.")
    ] = None
    came_back: Annotated[bool | None, means("True when the site responded again by itself after the trial.")] = None
    observer_share: Annotated[
        float | None, means("CPU time the instrument itself used in the load, as a share of the machine's.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Findings of the guards, and their evidence."""

    log: Annotated[str | None, means("Log that tells more about a failure, relative to the run's folder.")] = None

    guards: Annotated[
        dict[str, str] | None, means("Guard -> ok, or not measured and why, or the reason to discard the trial.")
    ] = None
    body_bytes: Annotated[float | None, means("Mean bytes of the workload's bodies, as visited before the load.")] = (
        None
    )
    bodies_checked: Annotated[int | None, means("Pages fetched and compared during the load.")] = None
    tool_cpu_share: Annotated[
        float | None, means("CPU time of the load tool as a share of what its threads could use.")
    ] = None
    other_cpu_share: Annotated[
        float | None, means("Share of the machine's CPU time that went to processes outside the trial.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class Trial(TrialIdentity):
    """One timed measurement of a case at a level."""

    status: Annotated[
        Literal["ok", "failed", "discarded"],
        means("ok; failed: no figures; discarded: figures that a guard does not trust."),
    ]
    reason: Annotated[str | None, means("Reason why the trial failed or is discarded.")] = None
    figures: Annotated[TrialFigures | None, means("Figures of the load tool; null of a failed trial.")] = None
    costs: Annotated[
        Costs | None, means("Costs of the servers and services under the load; null of a failed trial, and on hosts.")
    ] = None
    errors: Annotated[Errors, means("Responses that went wrong.")] = Errors()
    condition: Annotated[Condition, means("The deployment before, during and after the load.")] = Condition()
    evidence: Annotated[Evidence, means("Findings of the guards, and the log of a failure.")] = Evidence()

    @property
    def key(self) -> str:
        """The key shared by records of the same item."""
        return self.trial_id

    @property
    def throughput(self) -> float | None:
        """Requests a second; None of a failed trial."""
        if not self.figures:
            return None
        return self.figures.requests_per_second

    @property
    def requests(self) -> int:
        """Responses received in the timed load; 0 of a failed trial."""
        if self.figures:
            return self.figures.requests_total
        return 0

    @property
    def histogram(self) -> str | None:
        """The latency of an open loop; None without one."""
        if self.figures:
            return self.figures.histogram
        return None

    @property
    def memory_peak_bytes(self) -> dict[str, int | None] | None:
        """Largest memory by server and service; None if not sampled."""
        if self.costs:
            return self.costs.memory_peak_bytes
        return None

    @property
    def is_disturbed(self) -> bool:
        """True if the trial was discarded for interference of other processes, and is repeated."""
        return self.status == "discarded" and any(name == INTERFERENCE for name, _ in discarded_by(self))

    @property
    def imbalance(self) -> float | None:
        """Load of the busiest worker as a multiple of the workers' mean; None with fewer than two workers."""
        used = (self.costs and self.costs.worker_cpu_seconds) or ()
        total = sum(used)
        if len(used) > 1 and total:
            return used[0] * len(used) / total
        return None

    def __post_init__(self) -> None:
        if (self.level_connections is None) == (self.rate_requested is None):
            raise ResultsError(f"trial {self.trial_id}: needs level_connections or rate_requested, and not both")
        if self.status != "ok" and not self.reason:
            raise ResultsError(f"trial {self.trial_id}: status is {self.status} without a reason")
        if self.status != "failed" and self.figures is None:
            raise ResultsError(f"trial {self.trial_id}: status is {self.status} without figures")
        if self.status == "failed" and (self.figures or self.costs):
            raise ResultsError(f"trial {self.trial_id}: status is failed and yet it has figures")


def total(values: Mapping[str, float | None] | None) -> float | None:
    """The sum over servers and services; None if empty, or if one value is missing."""
    if not values:
        return None
    measured = known(values.values())
    if len(measured) < len(values):
        return None
    return sum(measured)


def largest(values: Iterable[Count | None]) -> Count | None:
    """The largest measured value; None without one."""
    return max(known(values), default=None)


def known(values: Iterable[Count | None]) -> list[Count]:
    """The measured values."""
    return [value for value in values if value is not None]


def discarded_by(trial: Trial) -> list[tuple[str, str]]:
    """The guards that discarded a trial, with their findings."""
    parts = (part.partition(": ") for part in (trial.reason or "").split("; "))
    return [(name, text) for name, colon, text in parts if colon]


def rates_of(
    trials: Iterable[Trial], name: Callable[[Trial], Any] = lambda trial: trial.case_id
) -> dict[Any, dict[int, float]]:
    """Case -> round -> requests/s of the trials to trust; `name` gives the case."""
    rates: dict[Any, dict[int, float]] = {}
    for trial in trials:
        if trial.status == "ok" and trial.throughput:
            rates.setdefault(name(trial), {})[trial.round] = trial.throughput
    return rates
