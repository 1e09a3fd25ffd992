"""What Locust counted when it ran a locustfile, in the report: in Locust's order, with what its figures mean. Pure."""

from __future__ import annotations

from bench.figures.words import plural
from bench.report.numbers import number, whole
from bench.results.locust import LocustFigures, LocustRequests

MEANING = (
    "As Locust counts them, unlike all other figures here: its users wait for each answer, a time "
    "counts from when the request left, not from when it was due, and percentiles are rounded, above 100 ms to two "
    "digits. A site that stands still thus looks better than it is. Do not compare these figures with others here."
)
HEADS = ("method", "name", "#requests", "#failed", "#requests/s", "#mean ms", "#p50", "#p95", "#p99", "#max ms")
FAILED = ("method", "name", "error", "#times")


def title(found: LocustFigures) -> str:
    """`mine.py on STACK with layer LAYER`."""
    return f"{found.locustfile} on {found.deployed}" if found.deployed else found.locustfile


def asked(found: LocustFigures) -> str:
    """What was asked of Locust, as a sentence."""
    workers = ", ".join(f"{host} with {plural(count, 'worker')}" for host, count in found.hosts.items())
    each = f"{number(found.users_per_second)} more each second"
    return (
        f"Locust {found.version}: {plural(found.users, 'user')}, {each}, {number(found.duration_s)} s, from {workers}."
    )


def cells(entry: LocustRequests) -> list[str]:
    """The figures of a line of the table."""
    times = (entry.latency_p50_ms, entry.latency_p95_ms, entry.latency_p99_ms, entry.latency_max_ms)
    figures = [number(value) for value in (entry.requests_per_second, entry.latency_mean_ms, *times)]
    return [whole(entry.requests), whole(entry.failures), *figures]
