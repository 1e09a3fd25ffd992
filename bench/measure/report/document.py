"""report.json: results of one or several runs, each field declared once with a sentence on its meaning.

`build` makes the document from folders of results, the page is rendered only from the document, the terminal prints its
first lines, and other programs read it. ``None`` means "not measured".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from bench.means import means
from bench.serve.catalog.names import NO_LIMIT
from bench.words import INCONCLUSIVE, LEADS, NOT_MEASURED, TIES, case_name

FORMAT = 2
# The reason of a case without a trial.
NO_TRIAL = "no trial was made"

VERDICT = Meta(
    description="leads: proven the best; ties: within the margin of the best; inconclusive: may be the best; "
    "not measured: no figure to trust, see the reason; empty: another case is proven faster.",
    extra_json_schema={"enum": [LEADS, TIES, INCONCLUSIVE, NOT_MEASURED, ""]},
)


@dataclass(frozen=True)
class Ratio:
    """Rate of the best case as a multiple of this case's."""

    estimate: Annotated[float, means("The best case's figure divided by this one's, from rounds in pairs.")]
    low: Annotated[float | None, means("Lower end of its 95 % confidence interval; null: not bounded.")]
    high: Annotated[float | None, means("Upper end of it; null: not bounded, as after one round.")]


@dataclass(frozen=True)
class Latency:
    """Response times in an open loop, with requests sent on a schedule."""

    rate_per_second: Annotated[float, means("Requests a second that left.")]
    p50_ms: Annotated[float | None, means("Half of the responses came within this many milliseconds.")]
    p99_ms: Annotated[float | None, means("99 in 100 did; null with fewer than 1,000 requests.")]
    requests: Annotated[int, means("Responses of all trials at this rate.")]


@dataclass(frozen=True)
class Point:
    """A case at another level than the verdict's."""

    level: Annotated[float, means("Connections of a closed loop, requests a second of an open one.")]
    value: Annotated[float | None, means("The figure that the chart shows at this level; null: not measured.")]


@dataclass(frozen=True)
class CaseLoad:
    """A case under one load of its board."""

    verdict: Annotated[str, VERDICT]
    reason: Annotated[str | None, means("Reason why it was not measured, or was measured no further.")]
    rates: Annotated[
        dict[int, float],
        means("Round -> requests a second, of trusted trials; in a capacity run, as achieved at the limit."),
    ]
    requests_per_second: Annotated[float | None, means("Median of the rounds.")]
    ratio: Annotated[Ratio | None, means("Rate of the best case under this load as a multiple of this case's.")]
    capacity_low: Annotated[float | None, means("Highest rate that held, in the lowest round; null: none sought.")]
    capacity_high: Annotated[float | None, means("Lowest rate that did not hold, in the highest; null: not found.")]
    visitors_per_hour: Annotated[
        float | None, means("Visitors an hour who go through the workload once, at the capacity; null: none sought.")
    ]
    latency: Annotated[Latency | None, means("Latency at one rate for every case.")]
    points: Annotated[tuple[Point, ...], means("Its figure at each level, if there are several.")]
    memory_peak_bytes: Annotated[float | None, means("Peak memory (PSS) of servers and services, rounds' median.")]
    cpu_seconds_per_1000_requests: Annotated[float | None, means("CPU seconds of all of them, rounds' median.")]
    database_connections_peak: Annotated[int | None, means("Most client connections to the database.")]
    queries_per_request: Annotated[float | None, means("Database queries of a request, on average.")]
    imbalance: Annotated[
        float | None, means("CPU time of the busiest worker divided by the mean of all; from 1.3 on it is noted.")
    ]
    errors: Annotated[int, means("Requests without a right response in the trials that count.")]
    requests: Annotated[int, means("Responses in the trials that count.")]
    log: Annotated[str | None, means("Log that tells more about a failure, relative to the run's folder.")]
    trials: Annotated[tuple[str, ...], means("Folders under raw/ with what load tool and servers printed.")]


@dataclass(frozen=True)
class FaultRow:
    """Effects on visitors of one fault on a case, over its rounds."""

    fault: Annotated[str, means("Name of the fault.")]
    group: Annotated[str, means("Group of the fault.")]
    outcome: Annotated[str, means("passed, failed, known limitation, discarded or skipped: the worst of its rounds.")]
    reason: Annotated[str | None, means("Reason why it is not a pass.")]
    requests_lost: Annotated[float | None, means("Requests without a right response, rounds' median.")]
    recovery_s: Annotated[float | None, means("Seconds from the end of the cause to right responses only.")]
    longest_gap_s: Annotated[float | None, means("Longest time without a right page, in seconds.")]
    stale_s: Annotated[float | None, means("Seconds for which the old version came after a deploy.")]
    mixed_s: Annotated[float | None, means("Seconds for which both versions came after a deploy.")]
    wrong: Annotated[float | None, means("Responses that were another account's, cut or of two versions.")]
    figures: Annotated[
        dict[str, float | None], means("Figure of this fault only -> rounds' median; the unit is in its name.")
    ]
    operator: Annotated[str | None, means("Work of the operator.")]


@dataclass(frozen=True)
class Checks:
    """Results of verify for a case."""

    passed: Annotated[int, means("Checks that passed.")]
    known_limitations: Annotated[int, means("Checks that stack or layer declare as not supported.")]
    skipped: Annotated[int, means("Skipped checks, which is not a pass.")]
    failed: Annotated[tuple[str, ...], means("Names of the checks with a wrong response.")]


@dataclass(frozen=True)
class HostRow:
    """Costs of a host of an inventory under a load, medians of the rounds."""

    case: Annotated[str, means("Name of the case.")]
    workload: Annotated[str, means("Name of the workload.")]
    host: Annotated[str, means("Name of the host.")]
    cpu_share: Annotated[float | None, means("CPU time as a share of what its cores have.")]
    memory_peak_bytes: Annotated[float | None, means("Largest memory in use.")]
    link_peak_share: Annotated[float | None, means("Largest share of its link's rate in one direction.")]
    database_connections_peak: Annotated[float | None, means("Client connections to its PostgreSQL.")]
    requests_share: Annotated[float | None, means("Its part of the requests passed to all web hosts.")]


@dataclass(frozen=True)
class CaseRow:
    """A case of a board: all of its facts."""

    stack: Annotated[str, means("Name of the stack.")]
    layer: Annotated[str, means("Name of the layer, or layers joined with +.")]
    verdict: Annotated[str, VERDICT]
    reason: Annotated[str | None, means("Reason why it was not measured, or was measured no further.")]
    ratio: Annotated[
        Ratio | None, means("Rate of the best case as a multiple of this case's, over all workloads (geometric mean).")
    ]
    loads: Annotated[dict[str, CaseLoad], means("Workload -> its figures.")]
    memory_peak_bytes: Annotated[float | None, means("Largest of its workloads.")]
    cpu_seconds_per_1000_requests: Annotated[float | None, means("Mean of its workloads.")]
    database_connections_peak: Annotated[int | None, means("Largest of its workloads.")]
    slow_clients: Annotated[
        int | None, means("Number of slow clients that stops the case; 0: no tried number does; null: not measured.")
    ]
    slow_clients_tried: Annotated[int | None, means("Most slow clients tried.")]
    deploy_lost: Annotated[float | None, means("Requests lost by a deploy, rounds' median.")]
    checks: Annotated[Checks | None, means("Outcomes of verify; null when it was not verified.")]
    needs_proxy: Annotated[bool, means("True if production needs a proxy in front to terminate TLS.")]
    caches_pages: Annotated[bool, means("True if anonymous readers get whole pages from a cache.")]
    notes: Annotated[tuple[str, ...], means("Differences from the other cases, with reasons.")]
    configuration: Annotated[str | None, means("Folder with its rendered configuration.")]

    @property
    def name(self) -> str:
        """The stack with its layer, in words."""
        return case_name(self.stack, self.layer)


@dataclass(frozen=True)
class Ranking:
    """Directly comparable cases: one run, size, database and kind of load."""

    run: Annotated[int, means("Index of its run.")]
    size: Annotated[str, means("Name of the resource limit.")]
    database: Annotated[str, means("Database behind the site.")]
    load: Annotated[str, means("The load in words: 16 connections, 200 requests/s, or a limit of the latency.")]
    kind: Annotated[
        Literal["throughput", "rate", "capacity"],
        means("The question: maximum throughput, a given rate, or the highest rate within a limit."),
    ]
    limit_ms: Annotated[float | None, means("Latency limit in milliseconds, in a capacity run.")]
    unit: Annotated[str, means("Unit of the level of its points.")]
    value: Annotated[str, means("Name of the figure of the points.")]
    margin: Annotated[float, means("Share by which figures must differ to count.")]
    verdict: Annotated[str, means("leads, ties or inconclusive: certainty of the best; not measured without figures.")]
    best: Annotated[int | None, means("Index of the recommended case: the leader, or of ties the smallest.")]
    uncached: Annotated[
        tuple[int, ...],
        means("Indexes of the best cases that cache no whole page."),
    ]
    uncached_verdict: Annotated[str, means("Verdict on the best of those.")]
    rounds: Annotated[int, means("Most rounds of any case.")]
    workloads: Annotated[tuple[str, ...], means("Its workloads, in the order of the plan.")]
    cases: Annotated[tuple[CaseRow, ...], means("Its cases, best first.")]
    answer: Annotated[
        tuple[str, ...],
        means("The recommendation, its cost, its safety and the next command; or the verdict on commits."),
    ]


@dataclass(frozen=True)
class FaultCase:
    """A case with its faults."""

    run: Annotated[int, means("Index of its run.")]
    stack: Annotated[str, means("Name of the stack.")]
    layer: Annotated[str, means("Name of the layer.")]
    size: Annotated[str, means("Name of the resource limit.")]
    database: Annotated[str, means("Database behind the site.")]
    faults: Annotated[tuple[FaultRow, ...], means("Every requested fault.")]

    @property
    def name(self) -> str:
        """The stack with its layer and a limited size, in words."""
        name = case_name(self.stack, self.layer)
        if self.size != NO_LIMIT:
            name += f", {self.size}"
        return name


@dataclass(frozen=True)
class RunFacts:
    """One folder: its request, its machine, and notes for the reader."""

    directory: Annotated[str, means("Its folder, relative to the page.")]
    name: Annotated[str, means("Name of the folder.")]
    started_at: Annotated[str, means("When it began, ISO 8601 with offset.")]
    facts: Annotated[dict[str, str], means("Machine, system, versions, load and command, in words.")]
    skips: Annotated[dict[str, tuple[str, ...]], means("Reason why something cannot run here -> what.")]
    known_limitations: Annotated[
        dict[str, tuple[str, ...]], means("Reason why a check is not supported -> checks and cases.")
    ]
    notes: Annotated[tuple[str, ...], means("Notes on trust in the figures.")]


@dataclass(frozen=True)
class Document:
    """The whole report."""

    format: Annotated[int, means("Version of this document."), Meta(ge=FORMAT, le=FORMAT)]
    title: Annotated[str, means("The comparison in words.")]
    answer: Annotated[tuple[str, ...], means("The first lines, as the terminal prints them.")]
    runs: Annotated[tuple[RunFacts, ...], means("The folders it was made from.")]
    boards: Annotated[tuple[Ranking, ...], means("The cases, in tables that may be compared within.")]
    faults: Annotated[tuple[FaultCase, ...], means("The faults that were made.")]
    hosts: Annotated[tuple[HostRow, ...], means("Costs of each host of an inventory; empty on one host.")]
    warning: Annotated[str, means("The line before the first lines: what to install before choosing; or empty.")] = ""
