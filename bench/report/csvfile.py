"""The report as CSV: one line a trial, units in the header, nothing where nothing was measured."""

from __future__ import annotations

import csv
import io
from dataclasses import fields

from bench.report.model import Report, per_thousand, total
from bench.report.numbers import one_line
from bench.results import Trial

# Fields of a trial that are one value; those below are spread over a column for each server or service.
PLAIN = tuple(
    item.name for item in fields(Trial) if item.name not in ("memory", "memory_peak_bytes", "cpu_seconds", "processes")
)
PER_SERVER = ("memory_peak_bytes", "cpu_seconds", "processes")
COMPUTED = ("memory_peak_bytes_total", "cpu_seconds_total", "cpu_seconds_per_1000_requests")


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
    return [total(trial.memory_peak_bytes), seconds, per_thousand(seconds, trial)]


def cell(value: object) -> object:
    """A value as a cell: empty for null, and no text that a spreadsheet would run as a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return value
    text = one_line(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
