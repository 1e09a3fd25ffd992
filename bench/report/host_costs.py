"""What each host of an inventory used, and how the front spread the requests over the web hosts. Pure."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from bench.report.model import CaseRow, Panel
from bench.report.numbers import MIB, number, whole
from bench.results.hosts import HostCosts


def _percent(share: float | None) -> float | None:
    return None if share is None else share * 100


def _mbit_per_second(sent: int | None, sampled_s: float | None) -> float | None:
    return None if sent is None or not sampled_s else sent * 8 / sampled_s / 1e6


# Column -> how to compute it of a host in a trial; the report shows the median of the rounds.
COLUMNS: dict[str, Callable[[HostCosts], float | None]] = {
    "CPU, % of its cores": lambda host: _percent(host.cpu_share),
    "memory MiB": lambda host: None if host.memory_peak_bytes is None else host.memory_peak_bytes / MIB,
    "received Mbit/s": lambda host: _mbit_per_second(host.received_bytes, host.sampled_s),
    "sent Mbit/s": lambda host: _mbit_per_second(host.sent_bytes, host.sampled_s),
    "link at most, %": lambda host: _percent(host.link_peak_share),
    "database connections": lambda host: host.database_connections_peak,
    "requests, %": lambda host: _percent(host.requests_share),
}


def heads(panel: Panel) -> list[str]:
    """The columns that a host of the panel has a figure for; none for a run on one host."""
    every = [host for row in panel.rows for costs in _by_host(row).values() for host in costs]
    return [name for name, compute in COLUMNS.items() if any(compute(host) is not None for host in every)]


def rows(panel: Panel) -> list[tuple[CaseRow, str, list[str]]]:
    """Each measured row with each of its hosts, and the figures of that."""
    names = heads(panel)
    return [
        (row, host, [_text(name, costs) for name in names])
        for row in panel.rows
        for host, costs in _by_host(row).items()
        if names
    ]


def _by_host(row: CaseRow) -> dict[str, list[HostCosts]]:
    """Host -> what it used, round by round."""
    found: dict[str, list[HostCosts]] = {}
    for trial in row.ok.values():
        for host, costs in (trial.hosts or {}).items():
            found.setdefault(host, []).append(costs)
    return found


def _text(name: str, costs: list[HostCosts]) -> str:
    known = [value for host in costs if (value := COLUMNS[name](host)) is not None]
    figure = median(known) if known else None
    return whole(round(figure)) if name == "database connections" and figure is not None else number(figure)
