"""The open loop: requests leave on a schedule, by a program of this project (bench/load/openloop/).

What its figures mean: latency counts from the moment a request was due, in steps of a microsecond up to three digits,
so that what waits behind a stalled server is in it. Requests due while all is well leave within a fraction of a
millisecond; how late they left is told, and so is what could not be sent at all. Nothing is followed, asked again or
left out. docs/methodology.md says why this one and what others showed.
"""

from __future__ import annotations

import json

from bench.figures import histogram
from bench.load.base import HERE, Command, Figures, Job, Tool, latencies


class OpenLoop(Tool):
    """bench/load/openloop/__main__.py"""

    name = "openloop"
    programs = ("python3", "python")
    version = ("-c", "from bench.load.openloop import VERSION; print(VERSION)")
    url_list = True
    percentiles = True
    latency_step_ms = 0.001
    modes = ("open",)

    def command(self, program: str, job: Job) -> Command:
        """The program with its job in a file. Raises ValueError for a job without a rate."""
        if job.rate is None:
            raise ValueError("openloop needs a rate")
        said = {
            "url": job.base_url,
            "paths": job.paths,
            "rate": job.rate,
            "seconds": job.seconds,
            "timeout_s": job.timeout_s,
            "keep_alive": job.keep_alive,
            "connections": job.connections,
            "processes": job.threads,
        }
        files = {"openloop.json": json.dumps(said, indent=1) + "\n"}
        return Command(
            (program, "-m", "bench.load.openloop", "openloop.json"), files, {"PYTHONPATH": str(HERE.parents[1])}
        )

    def parse(self, stdout: str, stderr: str) -> Figures:
        """The figures of the JSON object that it prints."""
        try:
            said = json.loads(stdout.strip().splitlines()[-1])
            seconds, answers, statuses = said["seconds"], said["answers"], said["statuses"]
            delay = histogram.merged([said["delay"]])
            found = latencies(histogram.merged([said["latency"]]))
            resized = said["resized"]
            return Figures(
                **{
                    "duration_s": seconds,
                    "requests_total": answers,
                    "requests_per_second": answers / seconds,
                    "bytes_per_second": said["bytes"] / seconds,
                    "latency_max_ms": said["max_us"] / 1000 or None,
                    "errors_connect": said["connect"],
                    "errors_read": said["read"],
                    "errors_timeout": said["timeout"],
                    "responses_not_2xx": sum(n for status, n in statuses.items() if not 200 <= int(status) < 300),
                    "problem": f"{resized} answers of another length than the first" if resized else None,
                    "statuses": statuses,
                    "thirds": tuple(said["thirds"]),
                    "requests_dropped": said["dropped"],
                    "send_delay_p99_ms": delay.get_value_at_percentile(99) / 1000,
                    **found,
                }
            )
        except (IndexError, ValueError, KeyError, TypeError, ZeroDivisionError, AttributeError):
            raise self.not_figures(stdout, stderr) from None
