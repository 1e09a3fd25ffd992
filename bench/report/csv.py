"""The report as CSV: one line a trial, units in the header, nothing where nothing was measured."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import fields

from bench.report.model import Report, per_thousand, total
from bench.report.numbers import one_line
from bench.results.trials import Trial

# Fields with a value for each server or service: a column each, `field:server`.
PER_SERVER = (
    "memory_idle_bytes",
    "memory_peak_bytes",
    "memory_slope_bytes_per_s",
    "cpu_seconds",
    "processes",
    "threads",
    "close_wait",
)
# What no cell can hold: samples over time, and the histogram that percentiles are merged from. trials.jsonl has both.
LEFT_OUT = ("memory", "histogram")
# The other fields are one cell; what is not one value is written as JSON.
PLAIN = tuple(item.name for item in fields(Trial) if item.name not in (*PER_SERVER, *LEFT_OUT))
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
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow([cell(name) for name in header])
    for trial in trials:
        values = [getattr(trial, name) for name in PLAIN]
        values += _computed(trial)
        values += [(getattr(trial, field) or {}).get(name) for field in PER_SERVER for name in servers[field]]
        writer.writerow([cell(value) for value in values])
    return stream.getvalue()


def _computed(trial: Trial) -> list[float | None]:
    seconds = total(trial.cpu_seconds)
    peak, rate = total(trial.memory_peak_bytes), trial.requests_per_second
    per_rate = peak / rate * 1000 if peak is not None and rate else None
    return [peak, seconds, per_thousand(seconds, trial), per_rate]


def cell(value: object) -> object:
    """A value as a cell: empty for null, and no text that a spreadsheet would run as a formula."""
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
