"""Further costs of a trial, as columns that a panel shows when at least one of its rows has them. Pure."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from bench.report.model import MEASURED, CaseRow, Panel, total
from bench.report.numbers import NOT_MEASURED, number
from bench.results.trials import Trial


def _of_servers(field: str) -> Callable[[Trial], float | None]:
    return lambda trial: total(getattr(trial, field))


def evenness(trial: Trial, workers: int = 0) -> float | None:
    """Requests of the busiest worker divided by the mean of all workers: of those that answered, or of so many."""
    counts = list((trial.requests_per_worker or {}).values())
    return max(counts) * max(len(counts), workers) / sum(counts) if counts and sum(counts) else None


# Column -> how to compute it from a trial; the report shows the median of the rounds.
COLUMNS: dict[str, Callable[[Trial], float | None]] = {
    "queries per request": lambda trial: trial.queries_per_request,
    "busiest worker / mean": evenness,
    "processes": _of_servers("processes"),
    "database connections": lambda trial: trial.database_connections_peak,
    "database connections left": lambda trial: trial.database_connections_left,
    "connections in CLOSE_WAIT": _of_servers("close_wait"),
    "memory growth, MiB/min": lambda trial: (
        None if (slope := total(trial.memory_slope_bytes_per_s)) is None else slope * 60 / 1024 / 1024
    ),
    "restarts": lambda trial: trial.restarts,
    "killed (memory)": lambda trial: trial.oom_kills,
    "instrument, % of CPU": lambda trial: None if trial.observer_share is None else trial.observer_share * 100,
}


def figure(row: CaseRow, name: str) -> float | None:
    """The median over the rounds; None when no round measured it."""
    known = [value for trial in row.ok.values() if (value := COLUMNS[name](trial)) is not None]
    return median(known) if known else None


def heads(panel: Panel) -> list[str]:
    """The columns that a panel has a figure for."""
    rows = [row for row in panel.rows if row.outcome == MEASURED]
    return [name for name in COLUMNS if any(figure(row, name) is not None for row in rows)]


def cells(panel: Panel, row: CaseRow) -> list[str]:
    """The figures of a row in those columns."""
    return [text(figure(row, name)) for name in heads(panel)]


def text(value: float | None) -> str:
    """A figure with its sign."""
    if value is None:
        return NOT_MEASURED
    return f"-{number(-value)}" if value < 0 else number(value)
