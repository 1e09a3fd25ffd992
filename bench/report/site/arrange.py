"""The runs of a site, arranged: the newest figures of each case, the matrices, and the history of each case. Pure."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from markupsafe import Markup

from bench.figures.stats import Estimate
from bench.figures.words import plural
from bench.report import row_charts
from bench.report.numbers import moment, number, when
from bench.report.row_charts import ChartEntry, RowChart
from bench.report.safety import GroupOutcome
from bench.results.records import GROUPS
from bench.results.site import SiteCase, SiteFailure, SiteFault, SiteRun

MAX_POINTS = 30  # runs in the history of a case


@dataclass(frozen=True)
class Shown:
    """The newest figures of a case on one machine."""

    run: SiteRun
    case: SiteCase


@dataclass(frozen=True)
class Board:
    """Cases that may be compared: one machine, workload, load, size, database and project. The fastest first."""

    machine: str
    workload: str
    load: str
    size: str
    database: str
    project: str
    rows: tuple[Shown, ...]

    @property
    def title(self) -> str:
        """What they have in common, beside machine and workload."""
        parts = [self.load, f"size {self.size}" if self.size != "unlimited" else "", self.database]
        parts.append(f"project {self.project}" if self.project else "")
        return ", ".join(filter(None, parts))


@dataclass(frozen=True)
class History:
    """One case on one machine in several runs, oldest first."""

    case: SiteCase
    machine: str
    runs: tuple[tuple[SiteRun, SiteCase], ...]

    @property
    def title(self) -> str:
        """The case in words."""
        case = self.case
        size = f", size {case.size}" if case.size != "unlimited" else ""
        return f"{case.stack} with {case.layer}, {case.workload}, {case.load}{size}, {case.database}"

    @property
    def chart(self) -> Markup:
        """Requests/s with their intervals, a row a run."""
        entries = [
            ChartEntry(
                day(run),
                1,
                (Estimate(case.requests_per_second, case.requests_low, case.requests_high, case.rounds),),
                (number(case.requests_per_second),),
            )
            for run, case in self.runs[-MAX_POINTS:]
        ]
        chart = RowChart([("", entries)], ("requests/s",), f"Requests/s by run: {self.title}", "requests/s")
        return row_charts.bars(chart, row_charts.NARROW)


@dataclass(frozen=True)
class AllRuns:
    """All runs of a site by file name, newest first."""

    runs: Mapping[str, SiteRun]

    @property
    def title(self) -> str:
        """What the site holds."""
        return f"{plural(len(self.runs), 'run')} on {plural(len(self.machines), 'machine')}"

    @cached_property
    def machines(self) -> list[str]:
        """Every machine, that of the newest run first."""
        return list(dict.fromkeys(run.machine for run in self.runs.values()))

    @cached_property
    def _series(self) -> dict[tuple[str, ...], list[tuple[SiteRun, SiteCase]]]:
        """(machine, project, case) -> its runs, newest first."""
        found: dict[tuple[str, ...], list[tuple[SiteRun, SiteCase]]] = {}
        for run in self.runs.values():
            for case in run.cases:
                found.setdefault((run.machine, run.project, *case.key), []).append((run, case))
        return found

    @cached_property
    def boards(self) -> list[Board]:
        """The newest figures of every case, by what may be compared, machine by machine."""
        found: dict[tuple[str, str, str, str, str, str], list[Shown]] = {}
        for (machine, project, *_), series in self._series.items():
            run, case = series[0]
            key = (machine, case.workload, case.load, case.size, case.database, project)
            found.setdefault(key, []).append(Shown(run, case))
        boards = [
            Board(*key, tuple(sorted(rows, key=lambda row: -row.case.requests_per_second)))
            for key, rows in found.items()
        ]
        return sorted(boards, key=lambda board: self.machines.index(board.machine))

    def choices(self, field: str) -> list[str]:
        """The values of a field of the boards, for a filter."""
        return list(dict.fromkeys(getattr(board, field) for board in self.boards))

    @property
    def layers(self) -> list[str]:
        """Every layer that was measured."""
        return list(dict.fromkeys(row.case.layer for board in self.boards for row in board.rows))

    @cached_property
    def histories(self) -> list[History]:
        """Every case that several runs measured on one machine."""
        return [
            History(series[0][1], key[0], tuple(reversed(series)))
            for key, series in self._series.items()
            if len(series) > 1
        ]

    @cached_property
    def safety(self) -> dict[str, dict[str, GroupOutcome]]:
        """Layer -> group -> its checks over all stacks, each deployment as its newest run found it."""
        seen: set[tuple[str, str]] = set()
        counts: dict[str, dict[str, Counter[str]]] = {}
        for run in self.runs.values():
            here = {(item.stack, item.layer) for item in run.checks} - seen
            for item in run.checks:
                if (item.stack, item.layer) in here:
                    counts.setdefault(item.layer, {}).setdefault(item.group, Counter()).update(item.counts)
            seen |= here
        return {layer: {name: GroupOutcome(count) for name, count in found.items()} for layer, found in counts.items()}

    @property
    def groups(self) -> list[str]:
        """The groups of checks that any run made."""
        found = dict.fromkeys(name for groups in self.safety.values() for name in groups)
        return [*(name for name in GROUPS if name in found), *(name for name in found if name not in GROUPS)]

    @property
    def failures(self) -> list[tuple[SiteRun, SiteFailure]]:
        """Every check that failed in the newest run of its deployment."""
        seen: set[tuple[str, str]] = set()
        found = []
        for run in self.runs.values():
            here = {(item.stack, item.layer) for item in run.checks} - seen
            found += [(run, item) for item in run.failures if (item.stack, item.layer) in here]
            seen |= here
        return found

    @cached_property
    def faults(self) -> dict[tuple[str, ...], dict[str, tuple[SiteRun, SiteFault]]]:
        """Deployment -> fault -> what visitors noticed in its newest run."""
        found: dict[tuple[str, ...], dict[str, tuple[SiteRun, SiteFault]]] = {}
        for run in self.runs.values():
            for item in run.faults:
                where = (item.stack, item.layer, item.size, item.database)
                found.setdefault(where, {}).setdefault(item.fault, (run, item))
        return found

    @property
    def fault_names(self) -> list[str]:
        """Every fault that any run made."""
        return list(dict.fromkeys(name for made in self.faults.values() for name in made))

    def unexpected(self) -> Iterator[tuple[str, str, str, str, str | None]]:
        """Deployment, fault, reason, the command that repeats it and a failing request, of what was not as expected."""
        for where, made in self.faults.items():
            for name, (_, item) in made.items():
                if item.word != "pass" and item.reason:
                    yield deployment(where), f"{name} ({item.word})", item.reason, _repeated(item), item.request


def _repeated(item: SiteFault) -> str:
    """The command that makes a fault again."""
    options = ["--layer", item.layer] if item.layer != "none" else []
    options += ["--size", item.size] if item.size != "unlimited" else []
    options += ["--database", item.database] if item.database != "sqlite" else []
    return shlex.join(["python", "-m", "bench", "faults", item.stack, *options, "--fault", item.fault])


def deployment(where: Iterable[str]) -> str:
    """Stack and layer, with size and database where they are not the default."""
    stack, layer, size, database = where
    parts = [f"{stack} with {layer}", size if size != "unlimited" else "", database if database != "sqlite" else ""]
    return ", ".join(filter(None, parts))


def day(run: SiteRun) -> str:
    """When it began, short: `2026-11-22 16:35`."""
    at = moment(run.started_at)
    return f"{at:%Y-%m-%d %H:%M}" if at else when(run.started_at)
