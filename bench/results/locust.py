"""What Locust counted when it ran somebody's locustfile: a line of ``locust.jsonl`` in the folder of a run.

Locust counts from when a request left, not from when it was due, and rounds the times in its percentiles to whole
milliseconds, above 100 to two digits. Its figures are kept apart from those of trials, and nothing compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from bench.results.records import means

# The name under which Locust itself adds all requests up.
ALL = "Aggregated"


@dataclass(frozen=True)
class LocustRequests:
    """The requests of one name, as Locust counts them."""

    method: Annotated[str, means("Method of the requests, empty for all together.")]
    name: Annotated[str, means("Name that the locustfile gave them, or their address.")]
    requests: Annotated[int, means("Requests that ended, right or wrong.")]
    failures: Annotated[int, means("Those of them that Locust or the locustfile called failed.")]
    requests_per_second: Annotated[float, means("Requests a second between the first and the last one.")]
    latency_mean_ms: Annotated[float, means("Mean time from when a request left, in milliseconds.")]
    latency_p50_ms: Annotated[float, means("Half of them took at most this many milliseconds, rounded.")]
    latency_p95_ms: Annotated[float, means("95 in 100 took at most this many milliseconds, rounded.")]
    latency_p99_ms: Annotated[float, means("99 in 100 took at most this many milliseconds, rounded.")]
    latency_max_ms: Annotated[float, means("The longest one, in milliseconds.")]


@dataclass(frozen=True)
class LocustFailure:
    """An error that requests of one name had."""

    method: Annotated[str, means("Method of the requests.")]
    name: Annotated[str, means("Name that the locustfile gave them, or their address.")]
    error: Annotated[str, means("What went wrong, in Locust's words.")]
    occurrences: Annotated[int, means("How often.")]


@dataclass(frozen=True)
class LocustFigures:
    """One run of a locustfile."""

    version: Annotated[str, means("Version of Locust that counted.")]
    locustfile: Annotated[str, means("Name of the locustfile.")]
    hosts: Annotated[dict[str, int], means("Load host -> its worker processes.")]
    users: Annotated[int, means("Users that were asked for.")]
    users_per_second: Annotated[float, means("Users that were asked to begin each second.")]
    duration_s: Annotated[float, means("Seconds of the run, with those in which users began.")]
    started_at: Annotated[str, means("When it began, ISO 8601 with offset.")]
    requests: Annotated[tuple[LocustRequests, ...], means("Requests by name; the last entry has all of them.")]
    failures: Annotated[tuple[LocustFailure, ...], means("Errors by name of the requests.")] = ()
    deployed: Annotated[str, means("Stack, layer and size that were asked, in words.")] = ""
    raw: Annotated[str, means("Folder with Locust's own files, relative to the run's.")] = ""
