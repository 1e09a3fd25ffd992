"""wrk: the default. Many connections on few threads, light enough to leave the cores to the servers.

Figures: wrk counts statuses of 400 and above; redirects show in the pages requested before and after the load. A
request without a response at the end is not counted. Only the longest latency is used: wrk adds made-up samples to the
rest, for requests delayed by a slow response.
"""

from __future__ import annotations

from bench.measure.load.base import HERE, Command, Figures, Tool, last_object
from bench.measure.load.openloop.job import LoadJob


class Wrk(Tool):
    """https://github.com/wg/wrk"""

    name = "wrk"
    programs = ("wrk",)
    version = ("-v",)
    url_list = True

    def command(self, program: str, job: LoadJob) -> Command:
        """wrk with a script for the paths.

        Threads share the connections evenly, because wrk drops the remainder of the division.
        """
        threads = self.threads(job)
        connections = "close"
        if job.keep_alive:
            connections = "keep"
        argv = (
            program,
            f"-t{threads}",
            f"-c{job.connections}",
            f"-d{job.seconds}s",
            "--timeout",
            f"{job.timeout_s}s",
            "-s",
            str(HERE / "wrk.lua"),
            job.base_url,
            "--",
            "paths.txt",
            connections,
        )
        env = {"BENCH_THREADS": str(threads), "BENCH_SECONDS": str(job.seconds)}
        return Command(argv, {"paths.txt": "\n".join(job.paths) + "\n"}, env)

    def threads(self, job: LoadJob) -> int:
        """The largest number of threads that divides the connections."""
        return max(number for number in range(1, job.threads + 1) if job.connections % number == 0)

    def figures(self, stdout: str) -> Figures:
        """The figures in the last line, JSON printed by the script."""
        printed = last_object(stdout)
        seconds, bad = printed["duration_us"] / 1e6, printed["status"]
        statuses = {"100-399": printed["requests"] - bad, "400-599": bad}
        thirds = None
        if "thirds" in printed:
            thirds = tuple(printed["thirds"])
        return Figures(
            duration_s=seconds,
            requests_total=printed["requests"],
            requests_per_second=printed["requests"] / seconds,
            bytes_per_second=printed["bytes"] / seconds,
            latency_max_ms=printed.get("max_ms"),
            errors_connect=printed["connect"],
            errors_read=printed["read"] + printed["write"],
            errors_timeout=printed["timeout"],
            responses_not_2xx=bad,
            statuses={name: count for name, count in statuses.items() if count},
            thirds=thirds,
        )
