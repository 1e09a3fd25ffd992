"""wrk: the default. Many connections on few threads, light enough to leave the cores to the servers.

What its figures mean: latency counts from sending a request to having its whole answer, in steps of a
microsecond. wrk adds samples for requests that a slow answer kept from being sent (its own correction of
coordinated omission), so percentiles and mean lean to the slow side. It counts statuses of 400 and above; a
redirect does not count, and is found by the visits before and after the load. A request still unanswered at
the end is not counted at all.
"""

from __future__ import annotations

import json

from bench.load.base import HERE, Command, Figures, Job, Tool


class Wrk(Tool):
    """https://github.com/wg/wrk"""

    name = "wrk"
    programs = ("wrk",)
    version = ("-v",)
    url_list = True
    percentiles = True
    latency_step_ms = 0.001

    def command(self, program: str, job: Job) -> Command:
        """wrk with a script that reads the paths.

        Its threads share the connections evenly: wrk drops the remainder of the division.
        """
        threads = max(number for number in range(1, job.threads + 1) if job.connections % number == 0)
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
            "keep" if job.keep_alive else "close",
        )
        return Command(argv, {"paths.txt": "\n".join(job.paths) + "\n"}, {"BENCH_THREADS": str(threads)})

    def parse(self, stdout: str, stderr: str) -> Figures:
        """The figures of the JSON line that the script prints last."""
        lines = [line for line in stdout.splitlines() if line.startswith("{")]
        try:
            said = json.loads(lines[-1])
            seconds = said["duration_us"] / 1e6
            return Figures(
                duration_s=seconds,
                requests_total=said["requests"],
                requests_per_second=said["requests"] / seconds,
                bytes_per_second=said["bytes"] / seconds,
                latency_mean_ms=said.get("mean_ms"),
                latency_p50_ms=said.get("p50_ms"),
                latency_p90_ms=said.get("p90_ms"),
                latency_p99_ms=said.get("p99_ms"),
                latency_max_ms=said.get("max_ms"),
                errors_connect=said["connect"],
                errors_read=said["read"] + said["write"],
                errors_timeout=said["timeout"],
                responses_not_2xx=said["status"],
            )
        except (IndexError, ValueError, KeyError, ZeroDivisionError):
            raise self.not_figures(stdout, stderr) from None
