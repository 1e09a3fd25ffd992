"""ab: one URL, HTTP/1.0, one core.

The length of the body must not change: ab compares each body with the first, and without the comparison would count an
empty response as a good one.
"""

from __future__ import annotations

from bench.measure.load.base import Command, Figures, Tool, number
from bench.measure.load.openloop.job import LoadJob

# ab stops at a number of requests, 50,000 when only a time is given; this one is never reached in the time.
ENDLESS = 5_000_000


class Ab(Tool):
    """ab(1)."""

    name = "ab"
    programs = ("ab",)
    version = ("-V",)
    url_list = False

    def command(self, program: str, job: LoadJob) -> Command:
        """ab for a given time; -n comes after -t, because -t sets -n too."""
        # -r: go on after a broken connection, and count it.
        argv = [program, "-q", "-r"]
        if job.keep_alive:
            argv.append("-k")
        argv += ["-t", str(job.seconds), "-n", str(ENDLESS), "-s", str(job.timeout_s)]
        return Command((*argv, "-c", str(job.connections), job.base_url + job.paths[0]))

    def threads(self, job: LoadJob) -> int:
        """Always one."""
        return 1

    def figures(self, stdout: str) -> Figures:
        """The figures in ab's output."""
        seconds = number(r"^Time taken for tests:\s+([\d.]+)", stdout)
        done = number(r"^Complete requests:\s+(\d+)", stdout)
        if not seconds or done is None:
            raise ValueError("no summary")
        received = number(r"^Total transferred:\s+(\d+)", stdout)
        lengths = int(number(r"Length: (\d+)", stdout) or 0)
        broken = ("Receive: ", "Exceptions: ", "^Write errors: +")  # ab leaves the last out of its failed requests
        return Figures(
            duration_s=seconds,
            requests_total=int(done),
            requests_per_second=done / seconds,
            bytes_per_second=received and received / seconds,
            latency_max_ms=number(r"^\s+100%\s+(\d+)", stdout) or None,
            errors_connect=int(number(r"\(Connect: (\d+)", stdout) or 0),
            errors_read=sum(int(number(rf"{name}(\d+)", stdout) or 0) for name in broken),
            responses_not_2xx=int(number(r"^Non-2xx responses:\s+(\d+)", stdout) or 0),
            problem=_problem(lengths, received),
        )


def _problem(lengths: int, received: float | None) -> str | None:
    # A connection that closes without a response is a complete request to ab.
    if not received:
        return "only empty responses"
    if not lengths:
        return None
    return f"{lengths} responses of another length than the first"
