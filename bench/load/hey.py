"""hey: one URL, HTTP/1.1, times in tenths of a millisecond.

What its figures mean: latency counts from before connecting, where a connection is made, to having the whole answer.
What it prints of the latency is of its first million requests.
"""

from __future__ import annotations

import re

from bench.load.base import Command, Figures, Job, Tool, number


class Hey(Tool):
    """https://github.com/rakyll/hey"""

    name = "hey"
    programs = ("hey",)
    # It prints no version.
    version = ("-h",)
    url_list = False
    latency_step_ms = 0.1

    def command(self, program: str, job: Job) -> Command:
        """hey for a time. Raises ValueError for several paths."""
        url = self.only_url(job)
        close = () if job.keep_alive else ("-disable-keepalive",)
        time = ("-z", f"{job.seconds}s", "-t", str(job.timeout_s), "-cpus", str(job.threads))
        plain = ("-disable-compression", "-disable-redirects")
        argv = (program, *time, "-c", str(job.connections), *plain, *close, url)
        return Command(argv)

    def figures(self, stdout: str) -> Figures:
        """The figures of the text that hey prints."""
        seconds = number(r"^\s+Total:\s+([\d.]+) secs", stdout)
        if not seconds:
            raise ValueError("no summary")
        statuses = {
            status: int(count) for status, count in re.findall(r"^\s+\[(\d{3})\]\s+(\d+) responses", stdout, re.M)
        }
        errors = [(int(count), cause) for count, cause in re.findall(r"^\s+\[(\d+)\]\s+(\w+ \".+)$", stdout, re.M)]
        answers = sum(statuses.values())
        size = number(r"^\s+Total data:\s+(\d+) bytes", stdout)
        return Figures(
            duration_s=seconds,
            requests_total=answers,
            requests_per_second=answers / seconds,
            bytes_per_second=size / seconds if size else None,
            latency_mean_ms=_ms(r"^\s+Average:\s+([\d.]+) secs", stdout),
            latency_p50_ms=_ms(r"^\s+50% in ([\d.]+) secs", stdout),
            latency_p90_ms=_ms(r"^\s+90% in ([\d.]+) secs", stdout),
            latency_p99_ms=_ms(r"^\s+99% in ([\d.]+) secs", stdout),
            latency_max_ms=_ms(r"^\s+Slowest:\s+([\d.]+) secs", stdout),
            errors_connect=sum(count for count, cause in errors if "dial " in cause),
            errors_read=sum(count for count, cause in errors if "dial " not in cause and "exceeded" not in cause),
            errors_timeout=sum(count for count, cause in errors if "exceeded" in cause),
            responses_not_2xx=sum(count for status, count in statuses.items() if not status.startswith("2")),
            statuses=statuses,
        )


def _ms(pattern: str, text: str) -> float | None:
    # It prints 0 for a time shorter than its step.
    return (number(pattern, text) or 0) * 1000 or None
