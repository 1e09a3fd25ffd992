"""siege: many URLs, each request on a new connection, times in hundredths of a second.

The report has one number for failures of all kinds; bytes are in hundredths of a megabyte, too coarse to compare.
"""

from __future__ import annotations

import json

from bench.measure.load.base import HERE, Command, Figures, Tool
from bench.measure.load.openloop.job import LoadJob


class Siege(Tool):
    """https://www.joedog.org/siege-manual/"""

    name = "siege"
    programs = ("siege",)
    version = ("--version",)
    url_list = True
    can_keep_alive = False

    def command(self, program: str, job: LoadJob) -> Command:
        """siege with a separate home folder, for its settings and its file of cookies.

        siege ends at a whole second of the clock, up to one second early, so one second is added.
        """
        settings = (HERE / "siege.conf").read_text(encoding="utf-8") + f"timeout = {job.timeout_s}\n"
        urls = "".join(f"{job.base_url}{path}\n" for path in job.paths)
        argv = (program, "-b", "-c", str(job.connections), "-t", f"{job.seconds + 1}S", "-f", "urls.txt")
        return Command(argv, {".siege/siege.conf": settings, "urls.txt": urls}, {"HOME": "."})

    def threads(self, job: LoadJob) -> int | None:
        """No limit of threads."""
        return None

    def figures(self, stdout: str) -> Figures:
        """The figures in the JSON object printed by siege."""
        printed = json.loads(stdout[stdout.index("{") :])
        seconds, done, failed = printed["elapsed_time"], printed["transactions"], printed["failed_transactions"]
        problem = None
        if failed:
            problem = f"{failed} failed transactions"
        return Figures(
            duration_s=seconds,
            requests_total=done,
            requests_per_second=done / seconds,
            latency_max_ms=printed["longest_transaction"] * 1000 or None,
            problem=problem,
        )
