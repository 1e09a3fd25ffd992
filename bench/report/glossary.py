"""One sentence for each metric and word of the report. The sentences about fields of a trial come from the results."""

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
    "median": "The middle one of the rounds' figures; for an even number of rounds the mean of the middle two.",
    "95 % interval": "The 95 % confidence interval of the median, by bootstrap over the rounds. With up to five rounds "
    "it is their range.",
    "tie": "Two cases tie when the 95 % confidence interval of their ratio does not lie entirely beyond the margin.",
    f"{TIMES} none": "Requests/s divided by those of layer none on the same stack in the same round; the median of all "
    "rounds.",
    "memory": "Peak proportional set size (PSS) of the process tree of each server and service, added up. PSS divides "
    "shared pages among the processes that share them. Peaks differ in time, so the sum is an upper bound.",
    "CPU s / 1,000": "CPU seconds (user and system) of all servers and services per 1,000 requests, without the load "
    "tool.",
    "MiB per 1,000 requests/s": "Peak memory divided by the thousands of requests/s served.",
    "errors": "Connect errors, broken connections, timeouts and answers outside 200 to 299, of all rounds together. "
    "Kinds that the load tool does not count are missing.",
}

WORDS = {
    "stack": "A chain of servers that serves the project, from the application server to the one that speaks HTTP to "
    "clients.",
    "layer": "A caching strategy laid over a stack; none is one.",
    "deployment": "A stack with a layer, running.",
    "workload": "Which URLs are requested, in what mix.",
    "size": "A limit on the memory and CPU time of stack, layer and services together.",
    "level": "Concurrent connections (closed loop) or requests a second (open loop).",
    "case": f"Stack {TIMES} layer {TIMES} workload {TIMES} size {TIMES} database.",
    "trial": "One timed measurement of a case at a level.",
    "round": "One pass over all cases, in shuffled order.",
    "baseline": "What other figures are compared with: layer none on the same stack.",
    "warm-up": "Load before a trial that is not measured. Caches are filled before it.",
    "closed loop": "Each connection waits for its answer before it sends the next request. It shows capacity.",
    "open loop": "Requests leave on a schedule, whether answers come or not. It shows the latency that visitors see.",
    "guard": "A check of a trial that voids it when its figures cannot be trusted.",
    "voided": "A trial with figures that no median or ratio uses, because a guard rejected it.",
}


def metrics() -> dict[str, str]:
    """Name in the report -> what it means."""
    meanings = describe(Trial)
    return {name: meanings[field] for field, name in METRICS.items()} | COMPUTED
