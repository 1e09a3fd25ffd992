"""wrk: the default. Many connections on few threads, light enough to leave the cores to the servers.

What its figures mean: latency counts from sending a request to having its whole answer, in steps of a
microsecond. wrk itself adds samples that nobody measured, for requests that a slow answer kept from being sent; they
make its own mean a multiple of the true one and are taken out again here (`as_measured`). It counts statuses of 400
and above, not redirects: the pages requested before and after the load show those. A request without an answer at
the end is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bench.figures import histogram
from bench.load.base import HERE, Command, Figures, Job, Tool, last_object, latencies


class Wrk(Tool):
    """https://github.com/wg/wrk"""

    name = "wrk"
    programs = ("wrk",)
    version = ("-v",)
    url_list = True

    def command(self, program: str, job: Job) -> Command:
        """wrk with a script that reads the paths.

        Its threads share the connections evenly: wrk drops the remainder of the division.
        """
        threads = self.threads(job)
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
        env = {
            "BENCH_THREADS": str(threads),
            "BENCH_SECONDS": str(job.seconds),
            "BENCH_CONNECTIONS": str(job.connections),
        }
        return Command(argv, {"paths.txt": "\n".join(job.paths) + "\n"}, env)

    def threads(self, job: Job) -> int:
        """The most threads that share the connections evenly."""
        return max(number for number in range(1, job.threads + 1) if job.connections % number == 0)

    def figures(self, stdout: str) -> Figures:
        """The figures of the JSON line that the script prints last."""
        printed = last_object(stdout)
        seconds = printed["duration_us"] / 1e6
        return Figures(
            duration_s=seconds,
            requests_total=printed["requests"],
            requests_per_second=printed["requests"] / seconds,
            bytes_per_second=printed["bytes"] / seconds,
            latency_max_ms=printed.get("max_ms"),
            errors_connect=printed["connect"],
            errors_read=printed["read"] + printed["write"],
            errors_timeout=printed["timeout"],
            responses_not_2xx=printed["status"],
            statuses=_statuses(printed["requests"], printed["status"]),
            thirds=tuple(printed["thirds"]) if "thirds" in printed else None,
            **_latencies(printed),
        )


def _statuses(requests: int, bad: int) -> dict[str, int]:
    counts = {"100-399": requests - bad, "400-599": bad}
    return {name: count for name, count in counts.items() if count}


def _latencies(printed: dict[str, Any]) -> dict[str, Any]:
    """From the histogram where the script could read it and it holds every request; else wrk's own figures."""
    found = as_measured(
        printed.get("histogram") or [], printed["requests"], printed["duration_us"], printed.get("connections", 0)
    )
    if found is not None:
        return latencies(histogram.of(found), printed.get("max_ms"))
    return {f"latency_{name}_ms": printed.get(f"{name}_ms") for name in ("mean", "p50", "p90", "p99")}


def as_measured(
    counts: Iterable[tuple[int, int]], requests: int, duration_us: int, connections: int
) -> list[tuple[int, int]] | None:
    """Pairs of microseconds and requests without the samples that wrk added; None when they do not add up.

    wrk's `stats_correct` takes the mean time of a request on a connection, e, and adds to every sample of 2 e and more
    others shorter by e, 2 e, ... down to e. So, beyond e, what was measured at n is the count at n less that at n + e.
    """
    if not connections:
        return None
    if requests < connections:
        # With so few requests wrk knows no pace: it added nothing.
        measured = [(value, count) for value, count in counts]
        return measured if sum(count for _, count in measured) == requests else None
    step = duration_us // (requests // connections)
    corrected = dict(counts)
    measured = [(n, count - (corrected.get(n + step, 0) if n > step else 0)) for n, count in corrected.items()]
    if sum(count for _, count in measured) != requests or any(count < 0 for _, count in measured):
        return None
    return [(value, count) for value, count in measured if count]
