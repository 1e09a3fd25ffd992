"""The load tool that is always there: a program of this project (bench/load/openloop/), closed loop and open loop.

What its figures mean: latency in steps of a microsecond, up to three digits. In the closed loop it counts from sending
a request, or from opening its connection where it needs a new one; in the open loop from the moment the request was
due, so that it includes the wait behind a stalled server. The open loop also measures how late requests left, and how
many it could not send. Requests under way at the end of a closed loop are not counted. Redirects are not
followed, failed requests are not repeated. docs/methodology.md says why it exists and how it compares with others.

A request costs it two to three times the CPU time that it costs wrk.
"""

from __future__ import annotations

import json
from typing import Any

from bench.figures import histogram
from bench.load.base import HERE, Command, Figures, Job, Tool, last_object, latencies


class Engine(Tool):
    """bench/load/openloop/__main__.py"""

    programs = ("python3", "python")
    version = ("-c", "from bench.load.openloop import VERSION; print(VERSION)")
    url_list = True

    def command(self, program: str, job: Job) -> Command:
        """The program with its job in a file. Raises ValueError for a job of the other loop, by its rate."""
        files = {"openloop.json": json.dumps(self.content(job), indent=1) + "\n"}
        return Command(
            (program, "-m", "bench.load.openloop", "openloop.json"), files, {"PYTHONPATH": str(HERE.parents[1])}
        )

    def content(self, job: Job) -> dict[str, Any]:
        """The job as the program reads it (bench.load.openloop.job). Raises ValueError like `command`."""
        if (job.rate is not None) != self.is_open:
            raise ValueError(f"{self.name} {'needs a' if self.is_open else 'takes no'} rate")
        return {
            "url": job.base_url,
            "paths": job.paths,
            "rate": job.rate,
            "times": job.times,
            "seconds": job.seconds,
            "timeout_s": job.timeout_s,
            "keep_alive": job.keep_alive,
            "connections": job.connections,
            # One log is of one process.
            "processes": 1 if job.mark else self.threads(job),
            "headers": job.headers,
            "mark": job.mark,
        }

    @property
    def is_open(self) -> bool:
        """Whether it is the open loop, in which requests leave on a schedule."""
        return self.mode == "open"

    def threads(self, job: Job) -> int:
        """No more processes than connections."""
        return min(job.threads, job.connections)

    def figures(self, stdout: str) -> Figures:
        """The figures of the JSON object that it prints."""
        printed = last_object(stdout)
        seconds, answers, statuses = printed["seconds"], printed["answers"], printed["statuses"]
        resized = printed["resized"]
        delay = histogram.merged([printed["delay"]]) if self.is_open else None
        return Figures(
            duration_s=seconds,
            requests_total=answers,
            requests_per_second=answers / seconds,
            bytes_per_second=printed["bytes"] / seconds,
            latency_max_ms=printed["max_us"] / 1000 or None,
            errors_connect=printed["connect"],
            errors_read=printed["read"],
            errors_timeout=printed["timeout"],
            responses_not_2xx=sum(n for status, n in statuses.items() if not 200 <= int(status) < 300),
            problem=f"{resized} answers of another length than the first" if resized else None,
            statuses=statuses,
            thirds=tuple(printed["thirds"]),
            requests_dropped=printed["dropped"] if self.is_open else None,
            send_delay_p99_ms=delay.get_value_at_percentile(99) / 1000 if delay is not None else None,
            **latencies(histogram.merged([printed["latency"]]), printed["max_us"] / 1000 or None),
        )


class ClosedLoopTool(Engine):
    """The engine with connections that send their next request when they have their answer."""

    name = "closedloop"
    fallback = True


class OpenLoopTool(Engine):
    """The engine with requests that leave on a schedule."""

    name = "openloop"
    mode = "open"
