"""One sentence for each metric and word of the report; those of a trial come from the results themselves."""

from __future__ import annotations

from bench.report.numbers import TIMES
from bench.results.records import describe
from bench.results.trials import Trial

# Field of a trial -> its name in the report.
METRICS = {
    "requests_per_second": "requests/s",
    "bytes_per_second": "bytes/s",
    "latency_mean_ms": "mean",
    "latency_p50_ms": "p50",
    "latency_p90_ms": "p90",
    "latency_p99_ms": "p99",
    "latency_p999_ms": "p99.9",
    "latency_max_ms": "max",
    "errors_connect": "connect errors",
    "errors_read": "read errors",
    "errors_timeout": "timeouts",
    "responses_not_2xx": "not 2xx",
    "time_to_ready_s": "ready",
}

COMPUTED = {
    "median": "The middle one of the rounds' figures; of an even number, the mean of the middle two.",
    "95 % interval": "Where the median lies with a confidence of 95 %, by bootstrap over the rounds; with up to five "
    "rounds from the lowest to the highest.",
    "MiB for each 1,000 requests/s": "Memory at the peak divided by the thousands of requests/s it served.",
    f"{TIMES} none": "Requests/s divided by those of the layer none on the same stack in the same round; the median of "
    "the rounds' ratios.",
    "memory": "Largest proportional set size (PSS: shared pages are divided among those who share them) of each "
    "server's and service's process tree, added up; not all of them peak at once, so the sum is an upper bound.",
    "CPU s / 1,000": "Processor seconds, user and system, of all servers and services for 1,000 requests; the "
    "load tool's own are not in it.",
    "errors": "Connect errors, broken connections, timeouts and answers outside 200 to 299, of all rounds "
    "together; kinds the load tool does not count are left out.",
}

WORDS = {
    "stack": "A chain of servers that serves the site, from the application server to the one clients talk to.",
    "layer": "A caching strategy laid over a stack; none is one.",
    "workload": "Which URLs are requested, in what mix.",
    "level": "Connections the load tool keeps busy at once.",
    "case": "Stack x layer x workload x size x database.",
    "trial": "One timed measurement of a case at a level.",
    "closed loop": "Connections that each wait for their answer before they ask again: shows capacity.",
    "open loop": "Requests that leave on a schedule whatever comes back: shows the latency that visitors see.",
    "voided": "A trial with figures that a guard says not to trust, and that count nowhere.",
    "size": "A limit of memory and processor time put on stack, layer and services together.",
}


def metrics() -> dict[str, str]:
    """Name in the report -> what it means."""
    said = describe(Trial)
    return {name: said[field] for field, name in METRICS.items()} | COMPUTED
