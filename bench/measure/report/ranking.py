"""The boards of a run: comparable cases, the best of them, and the certainty. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from statistics import fmean
from typing import Any, Literal

from bench.measure.records.capacity import Staircase, climbs, visits
from bench.measure.records.folder import Run
from bench.measure.records.records import CaseRecord, Dropped
from bench.measure.records.trials import Trial, known, largest
from bench.measure.report import fault_rows, loads
from bench.measure.report.comparison import finite
from bench.measure.report.document import CaseLoad, CaseRow, Checks, FaultCase, Ranking, Ratio
from bench.measure.report.loads import Measured
from bench.measure.stats import Decision, GeometricMean, Table
from bench.measure.stats.rate_search import Limit
from bench.measure.stats.table import Cases
from bench.serve.catalog.names import NO_LAYER
from bench.words import INCONCLUSIVE, NOT_MEASURED, TIES

# Needs of memory that differ by less are the same: so much do two runs of one case differ.
SAME_MEMORY = 1.05

Where = tuple[str, str]  # stack, layer


@dataclass(frozen=True)
class RankedCase:
    """The cases of a run at one size and database."""

    run: Run
    size: str
    database: str

    @property
    def limit(self) -> Limit | None:
        """The latency limit of a capacity run."""
        return self.run.info.plan.capacity

    @property
    def kind(self) -> Literal["throughput", "rate", "capacity"]:
        """The measured figure."""
        if self.limit:
            return "capacity"
        if self.opened:
            return "rate"
        return "throughput"

    @property
    def opened(self) -> bool:
        """True if the plan's own trials use an open loop; other plans have open-loop trials for latency."""
        return self.run.info.plan.mode == "open"

    @property
    def limit_ms(self) -> float | None:
        """The latency limit in milliseconds."""
        if not self.limit:
            return None
        return self.limit.milliseconds

    @property
    def unit(self) -> str:
        """The unit of the levels."""
        if self.kind == "throughput":
            return "connections"
        return "requests/s"

    @property
    def value(self) -> str:
        """The figure at each level, with its unit."""
        if self.limit:
            return f"{self.limit.percentile} in ms"
        return "requests/s"

    @cached_property
    def cases(self) -> list[CaseRecord]:
        """In the planned order."""
        return [case for case in self.run.info.cases if (case.size, case.database) == (self.size, self.database)]

    @property
    def workloads(self) -> list[str]:
        """Its workloads, in the order of the plan."""
        names = {case.workload for case in self.cases}
        return [name for name in self.run.info.plan.workloads if name in names]

    @property
    def names(self) -> dict[Where, str]:
        """(stack, layer) -> the name of the case."""
        return {(case.stack, case.layer): case.name for case in self.cases}

    @property
    def dropped(self) -> set[str]:
        """The cases found slower by a race."""
        ids = {item.case_id for item in self.run.info.dropped}
        return {case.name for case in self.cases if case.case_id in ids}

    def measured(self, workload: str) -> dict[str, Measured]:
        """Case -> results of the run under a workload."""
        trials: dict[str, list[Trial]] = {}
        for trial in (*self.run.trials, *self.run.latency):
            trials.setdefault(trial.case_id, []).append(trial)
        dropped: dict[str, dict[int, Dropped]] = {}
        for item in self.run.info.dropped:
            dropped.setdefault(item.case_id, {})[item.level] = item
        wrong: dict[Where, list[str]] = {}
        for check in self.run.checks:
            if not check.ok:
                wrong.setdefault((check.stack, check.layer), []).append(check.check)

        results = {}
        for case in self.cases:
            if case.workload != workload:
                continue
            own = trials.get(case.case_id, [])
            climbed: dict[int, Staircase] = {}
            if self.limit:
                climbed = climbs(own, self.limit).get(case.case_id, {})
            of_case = dropped.get(case.case_id, {}), wrong.get((case.stack, case.layer), [])
            results[case.name] = Measured(own, climbed, *of_case)
        return results


def places(run: Run) -> list[RankedCase]:
    """Every size and database of a run, in the order of its plan."""
    keys = dict.fromkeys((case.size, case.database) for case in run.info.cases)
    return [RankedCase(run, *key) for key in sorted(keys, key=lambda key: (run.info.plan.sizes.index(key[0]), key[1]))]


def board(place: RankedCase, number: int, faults: Sequence[FaultCase]) -> Ranking:
    """The board of a place, without its verdict in words; `faults` were made on the same machine."""
    by_load = {workload: _judged(place, workload) for workload in place.workloads}
    overall = GeometricMean([load.table for load in by_load.values()])
    decision = decide(overall, place, place.dropped)
    rows: dict[str, CaseRow] = {}
    for where, name in place.names.items():
        rows[name] = replace(_row(place, where, by_load, faults), **_to_best(overall, decision, name))
    ordered = sorted(rows, key=lambda name: _order(rows[name], name == decision.best))
    best = None
    if chosen := recommended(decision, rows):
        best = ordered.index(chosen)
    bare = decide(overall, place, {name for name, row in rows.items() if row.caches_pages})
    uncached = filter(None, (bare.best, *bare.ties, *bare.open))
    every_load = chain.from_iterable(row.loads.values() for row in rows.values())
    return Ranking(
        run=number,
        size=place.size,
        database=place.database,
        load=_load_words(place, {load.level for load in by_load.values()}),
        kind=place.kind,
        limit_ms=place.limit_ms,
        unit=place.unit,
        value=place.value,
        margin=place.run.info.plan.margin,
        verdict=decision.verdict,
        best=best,
        uncached=tuple(map(ordered.index, uncached)),
        uncached_verdict=bare.verdict,
        rounds=max((len(load.rates) for load in every_load), default=0),
        workloads=tuple(by_load),
        cases=tuple(rows[name] for name in ordered),
        answer=(),
    )


def _order(row: CaseRow, best: bool) -> tuple[bool, bool, float]:
    if row.ratio is None:
        return not best, True, 0.0
    return not best, False, row.ratio.estimate


def _load_words(place: RankedCase, levels: Iterable[int]) -> str:
    if place.limit:
        return place.limit.words
    shown = " or ".join(f"{level:,}" for level in sorted(levels))
    return f"{shown} {place.unit}"


# ------------------------------------------------------------------------------------------- judging


@dataclass(frozen=True)
class WorkloadRanking:
    """A workload of a place: its cases, at the level of the verdict, and the trusted rates."""

    level: int
    loads: Mapping[str, CaseLoad]
    table: Table[str]


def _judged(place: RankedCase, workload: str) -> WorkloadRanking:
    results = place.measured(workload)
    level = _main_level(place, results.values())
    rate: int | None = level
    if not place.opened:
        rate = loads.common_rate(results.values())
    visit = visits(place.run.addresses).get(workload)
    each: dict[str, CaseLoad] = {}
    rates: dict[str, dict[int, float]] = {}
    steps: dict[str, float] = {}
    dropped: set[str] = set()
    for name, item in results.items():
        if place.limit:
            load = loads.at_capacity(item, place.limit, visit)
        else:
            load = loads.at_level(item, level, place.run.info.plan.mode, rate)
        each[name] = load
        if load.verdict != NOT_MEASURED and load.rates:
            rates[name], steps[name] = load.rates, loads.step(item)
        if level in item.dropped:
            dropped.add(name)
    table = Table(rates, steps)
    decision = decide(table, place, dropped)
    for name, load in each.items():
        each[name] = replace(load, **_to_best(table, decision, name))
    return WorkloadRanking(level, each, table)


def _main_level(place: RankedCase, results: Iterable[Measured]) -> int:
    """The highest level with a figure, else the highest of the plan."""
    measured: list[int] = []
    for item in results:
        levels = item.levels(place.run.info.plan.mode)
        measured += [level for level, trials in levels.items() if loads.usable(trials)]
    return max(measured or place.run.info.plan.levels or (0,))


def decide(table: Cases[str], place: RankedCase, without: Collection[str] = ()) -> Decision[str]:
    """Decide on the best case, except those in `without`; a race has looked once a round."""
    plan = place.run.info.plan
    round_number = None
    if plan.until:
        round_number = max((trial.round for trial in place.run.trials), default=1)
    decision = table.decide(plan.margin, round_number, {*without} & {*table.names})
    if decision.best is None:
        return replace(decision, verdict=NOT_MEASURED)
    return decision


def _to_best(table: Cases[str], decision: Decision[str], name: str) -> dict[str, Any]:
    """The best as a multiple, None without a figure; and the verdict word, empty for a proven loser."""
    if decision.best is None or name not in table.names:
        return {"ratio": None, "verdict": NOT_MEASURED}
    estimate, low, high = table.ratio(decision.best, name)
    ratio = Ratio(estimate, low or None, finite(high))
    if name == decision.best:
        return {"ratio": ratio, "verdict": decision.verdict}
    words = {**dict.fromkeys(decision.ties, TIES), **dict.fromkeys(decision.open, INCONCLUSIVE)}
    return {"ratio": ratio, "verdict": words.get(name, "")}


def recommended(decision: Decision[str], rows: Mapping[str, CaseRow]) -> str | None:
    """The recommended case: the best, or among ties the fastest of the cases with the least memory."""
    if decision.best is None or decision.verdict != TIES:
        return decision.best
    needs = {name: rows[name].memory_peak_bytes or math.inf for name in (decision.best, *decision.ties)}
    least = min(needs.values()) * SAME_MEMORY
    return next((name for name, need in needs.items() if need <= least), decision.best)


# --------------------------------------------------------------------------------------------- a row


def _row(
    place: RankedCase, where: Where, by_load: Mapping[str, WorkloadRanking], faults: Sequence[FaultCase]
) -> CaseRow:
    name = place.names[where]
    planned = [case for case in place.cases if (case.stack, case.layer) == where]
    caches = {case.caches for case in planned}
    own: dict[str, CaseLoad] = {}
    lacking = []
    reasons = set()
    for workload, judged in by_load.items():
        if name not in judged.loads:
            continue
        own[workload] = load = judged.loads[name]
        if load.reason:
            reasons.add(load.reason)
        if load.verdict == NOT_MEASURED:
            lacking.append(f"{workload}: {load.reason}")
    why = "; ".join(lacking) or None
    if len(reasons) == 1 and len(lacking) in (0, len(own)):
        why = reasons.pop()
    costs = [load.cpu_seconds_per_1000_requests for load in own.values()]
    mean_cost = None
    if costs and None not in costs:
        mean_cost = fmean(known(costs))
    return CaseRow(
        stack=where[0],
        layer=where[1],
        verdict=NOT_MEASURED,
        reason=why,
        ratio=None,
        loads=own,
        memory_peak_bytes=largest(load.memory_peak_bytes for load in own.values()),
        cpu_seconds_per_1000_requests=mean_cost,
        database_connections_peak=largest(load.database_connections_peak for load in own.values()),
        **fault_rows.columns(faults, *where, place.size, place.database),
        checks=_checks(place.run, where),
        needs_proxy=any(case.needs_proxy for case in planned),
        # Without a record, assume that a layer caches pages.
        caches_pages=where[1] != NO_LAYER and not caches <= {"nothing", "parts"},
        notes=tuple(dict.fromkeys(chain.from_iterable(case.notes for case in planned))),
        configuration=_configuration(place.run, where),
    )


def _checks(run: Run, where: Where) -> Checks | None:
    every = {check.check: check for check in run.checks if (check.stack, check.layer) == where}
    words = [check.word for check in every.values()]
    if not words:
        return None
    failed = tuple(name for name, check in every.items() if not check.ok)
    return Checks(words.count("passed"), words.count("known limitation"), words.count("skipped"), failed)


def _configuration(run: Run, where: Where) -> str | None:
    folder = run.directory / "configs" / "~".join(where)
    if not folder.is_dir():
        return None
    return f"configs/{folder.name}"
