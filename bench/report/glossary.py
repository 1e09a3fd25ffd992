"""One sentence for each metric and word of the report.

Sentences about fields of a trial come from the results, those about words from docs/glossary.md.
"""

from __future__ import annotations

import re

from bench import paths
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
    "behind the fastest": "How many times the requests/s of a case the fastest serves: 95 % confidence intervals for "
    "all cases at once, from the noise of all of them. In a tie the case itself may be the fastest.",
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

# The words of docs/glossary.md that the report uses.
WORDS = (
    *("stack", "layer", "deployment", "workload", "size", "level", "case", "trial", "round", "baseline", "warm-up"),
    *("closed loop", "open loop", "guard", "voided", "tie"),
)


def words() -> dict[str, str]:
    """Word of the report -> what it means, from docs/glossary.md, without links."""
    text = (paths.PROJECT / "docs" / "glossary.md").read_text(encoding="utf-8")
    found = dict(re.findall(r"^\| (.+?) \| (.+?) \|$", re.sub(r"\[(.+?)\]\(.+?\)", r"\1", text), re.M))
    return {word: f"{found[word][:1].upper()}{found[word][1:]}." for word in WORDS}


def metrics() -> dict[str, str]:
    """Name in the report -> what it means."""
    meanings = describe(Trial)
    return {name: meanings[field] for field, name in METRICS.items()} | COMPUTED
