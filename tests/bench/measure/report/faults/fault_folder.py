"""A folder of `benchapp faults` full of invented outcomes. Nothing here was made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench.measure.faults.kinds import FAULTS
from bench.measure.records.fault_outcomes import FaultOutcome
from bench.measure.records.folder import Folder
from tests.bench.measure.records.run_data import INFO
from tests.bench.measure.report.report_folder import HOSTILE, environment

STARTED = "2026-11-22T08:00:00+00:00"


def outcome(stack: str, fault: str, number: int = 1, **changes) -> FaultOutcome:
    """One outcome, as expected except for the changes."""
    size = changes.pop("size", "unlimited")
    layer = changes.pop("layer", "none")
    seen = {"failed_new": 0, "failed_kept": 0, "longest_gap_s": 0.05, "recovery_s": 0.0, "wrong": 0, "stale": 0}
    if changes.get("status") == "skipped":
        seen = {}
    else:
        seen |= {"requests_new": 60, "requests_kept": 61, "retried": 1, "operator": "nothing", "rate_per_second": 12.0}
        seen |= {"missing_static": 0}
    return FaultOutcome(
        fault_id="~".join((stack, layer, size, "sqlite", fault, f"r{number}")),
        stack=stack,
        layer=layer,
        size=size,
        database="sqlite",
        fault=fault,
        group=FAULTS[fault].group,
        round=number,
        started_at=STARTED,
        **{"status": "ok", **seen, **changes},
    )


def good(stack: str, **where) -> list[FaultOutcome]:
    """A deployment that withstands everything."""
    deploy = {"operator": "reload", "mixed_s": 0.4, "stale_s": 0.2}
    return [
        outcome(stack, "configuration", operator="reload", **where),
        outcome(stack, "application", **deploy, **where),
        outcome(stack, "worker", failed_kept=1, recovery_s=0.04, **where),
        outcome(stack, "application-server", failed_new=12, recovery_s=1.8, longest_gap_s=1.9, **where),
        outcome(stack, "front-server", failed_new=10, recovery_s=1.1, longest_gap_s=1.2, **where),
        outcome(stack, "database", status="skipped", reason="it needs a separate database", **where),
        outcome(stack, "application-server-hangs", longest_gap_s=5.1, **where),
        outcome(stack, "slow-headers", figures={"stops_at": None}, **where),
        outcome(stack, "slow-bodies", figures={"stops_at": None}, **where),
        outcome(
            stack,
            "malformed",
            figures={"seed": 1, "server_errors": 0, "workers_ended": 0, "log_bytes_per_request": 31.5},
            **where,
        ),
        outcome(stack, "memory", status="skipped", reason="it needs a limit of memory: give --size bronze", **where),
    ]


REQUEST = "curl -i --path-as-is http://127.0.0.1:8000/stale/"


def bad(stack: str) -> list[FaultOutcome]:
    """A deployment that fails in every way."""
    return [
        outcome(
            stack,
            "application",
            status="failed",
            reason="378 stale pages",
            stale=378,
            stale_s=27.0,
            operator="reload",
            request=REQUEST,
        ),
        outcome(stack, "worker", status="discarded", reason="interference: other processes took 36 %"),
        outcome(stack, "application-server", status="failed", reason="not back", failed_new=50, recovery_s=None),
        outcome(stack, "slow-bodies", known_limitation="stops at 16 slow clients: threads", figures={"stops_at": 20}),
        outcome(
            stack,
            "malformed",
            status="failed",
            reason=f"129 malformed requests got a 5xx {HOSTILE}",
            figures={"server_errors": 129, "workers_ended": 4, "log_bytes_per_request": 2600.0},
        ),
        outcome(stack, "memory", 1, size="bronze", figures={"oom_kills": 2}, failed_new=2),
    ]


def make(directory: Path, outcomes: list[FaultOutcome], finished: str | None = "2026-11-22T08:20:00+00:00") -> Path:
    """A folder with these outcomes."""
    plan = replace(
        INFO.plan,
        stacks=tuple(dict.fromkeys(item.stack for item in outcomes)),
        faults=tuple(dict.fromkeys(item.fault for item in outcomes)) or ("worker",),
        rounds=max((item.round for item in outcomes), default=1),
        workloads=(),
        levels=(),
    )
    folder = Folder(directory)
    folder.create(replace(INFO, started_at=STARTED, finished_at=finished, plan=plan, cases=(), skips=()), environment())
    folder.append(*outcomes)
    return directory
