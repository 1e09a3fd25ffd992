"""The report as CSV: one line a trial, units in the header, empty cells where nothing was measured."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import fields

from bench.report.model import Report, memory_per_rate, per_thousand, total
from bench.report.numbers import one_line
from bench.results.trials import Trial

# Fields with a value for each server or service become a column each: `field:server`.
PER_SERVER = (
    "memory_idle_bytes",
    "memory_peak_bytes",
    "memory_slope_bytes_per_s",
    "cpu_seconds",
    "processes",
    "threads",
    "close_wait",
)
# Too large for a cell; trials.jsonl has them.
EXCLUDED = ("memory", "histogram", "hosts")
# All other fields are one cell each; lists and mappings become JSON.
PLAIN = tuple(item.name for item in fields(Trial) if item.name not in (*PER_SERVER, *EXCLUDED))
COMPUTED = (
    "memory_peak_bytes_total",
    "cpu_seconds_total",
    "cpu_seconds_per_1000_requests",
    "memory_bytes_per_1000_requests_per_second",
)


def render(report: Report) -> str:
    """The whole file as text."""
    trials = report.run.trials
    servers = {
        field: list(dict.fromkeys(name for trial in trials for name in getattr(trial, field) or ()))
        for field in PER_SERVER
    }
    header = [*PLAIN, *COMPUTED, *(f"{field}:{name}" for field in PER_SERVER for name in servers[field])]
    rows = [
        [
            *(getattr(trial, name) for name in PLAIN),
            *_computed(trial),
            *((getattr(trial, field) or {}).get(name) for field in PER_SERVER for name in servers[field]),
        ]
        for trial in trials
    ]
    return table([header, *rows])


def table(rows: Iterable[Iterable[object]]) -> str:
    """Rows of values as text."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\r\n").writerows(map(cell, row) for row in rows)
    return stream.getvalue()


def _computed(trial: Trial) -> list[float | None]:
    seconds = total(trial.cpu_seconds)
    return [total(trial.memory_peak_bytes), seconds, per_thousand(seconds, trial), memory_per_rate(trial)]


def cell(value: object) -> object:
    """A value as a cell: empty for null, and never text that a spreadsheet would run as a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, tuple, list)):
        return json.dumps(value)
    if not isinstance(value, str):
        return value
    text = one_line(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
