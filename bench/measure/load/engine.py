"""The built-in load tool, closed loop and open loop: the program in bench/measure/load/openloop/.

Figures: latency in steps of a microsecond, up to three digits. In the closed loop, latency counts from sending a
request, or from opening a new connection; in the open loop from the due time of the request, to include the wait behind
a stalled server. The open loop also measures how late requests left, and how many could not be sent. Requests under way
at the end of a closed loop are not counted. Redirects are not followed, failed requests are not repeated.
docs/methodology.md has the reasons for the tool and compares it with others.

A request costs two to three times the CPU time of wrk.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from bench.measure.load.base import HERE, PERCENTILES, Command, Figures, Tool, last_object
from bench.measure.load.openloop.job import LoadJob
from bench.measure.stats import histogram


class Engine(Tool):
    """bench/measure/load/openloop/__main__.py, in one of its modes."""

    programs = ("python3", "python")
    version = ("-c", "from bench.measure.load.openloop import VERSION; print(VERSION)")
    url_list = True

    def __init__(self, name: str, mode: str, fallback: bool = False):
        self.name, self.mode, self.fallback = name, mode, fallback

    def command(self, program: str, job: LoadJob) -> Command:
        """The program with its job in a file."""
        files = {"openloop.json": json.dumps(asdict(job), indent=1) + "\n"}
        return Command(
            (program, "-m", "bench.measure.load.openloop", "openloop.json"), files, {"PYTHONPATH": str(HERE.parents[2])}
        )

    def threads(self, job: LoadJob) -> int:
        """Each is a process."""
        return job.processes

    def figures(self, stdout: str) -> Figures:
        """The figures in the printed JSON object."""
        printed = last_object(stdout)
        seconds, responses, statuses = printed["seconds"], printed["answers"], printed["statuses"]
        problem, more = None, {}
        if resized := printed["resized"]:
            problem = f"{resized} responses of another length than the first"
        if self.mode == "open":
            more = _of_open_loop(printed)
        return Figures(
            duration_s=seconds,
            requests_total=responses,
            requests_per_second=responses / seconds,
            bytes_per_second=printed["bytes"] / seconds,
            latency_max_ms=printed["max_us"] / 1000 or None,
            errors_connect=printed["connect"],
            errors_read=printed["read"],
            errors_timeout=printed["timeout"],
            responses_not_2xx=sum(n for status, n in statuses.items() if not 200 <= int(status) < 300),
            problem=problem,
            statuses=statuses,
            thirds=tuple(printed["thirds"]),
            **more,
        )


def encoded(total: dict[str, Any]) -> dict[str, Any]:
    """Combine the counts of all processes for printing: with HDR histograms, readable by other programs."""
    figures = total | {"max_us": max(map(int, total["latency"]), default=0)}
    for name in ("latency", "delay"):
        counts = ((int(value), count) for value, count in total[name].items())
        figures[name] = histogram.encode(histogram.from_counts(counts))
    return figures


def _of_open_loop(printed: dict[str, Any]) -> dict[str, Any]:
    """Figures that need a schedule: latency from the due time, delays of sending, and dropped requests."""
    delay, latency = histogram.merged([printed["delay"]]), histogram.merged([printed["latency"]])
    figures = {"requests_dropped": printed["dropped"], "send_delay_p99_ms": None}
    if delay is not None:
        figures["send_delay_p99_ms"] = histogram.percentile_ms(delay, 99)
    if latency is None or not latency.total_count:
        return figures
    # A percentile is the upper end of its bucket, possibly above the exact maximum.
    most = printed["max_us"] / 1000
    percentiles = {name: min(histogram.percentile_ms(latency, at), most) for name, at in PERCENTILES.items()}
    return {**figures, **percentiles, "histogram": printed["latency"]}


# Connections that send the next request after a response, and requests sent on a schedule.
CLOSED_LOOP = Engine("closedloop", "closed", fallback=True)
OPEN_LOOP = Engine("openloop", "open")
