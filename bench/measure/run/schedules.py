"""Schedules: the order in which trials and faults are made. Pure: no file, no process, no clock.

A schedule is a generator. The generator yields the next item, is sent the record, and returns the reason for its end.
One driver (bench.measure.run.session) makes all items. A resumed run sends its records through its schedule (`Replay`)
and goes on with the first item without a record.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar

from bench.measure.records.capacity import MAX_REPEATS, Staircase, overloaded
from bench.measure.records.fault_outcomes import FaultOutcome
from bench.measure.records.records import CaseRecord, Ended, Plan
from bench.measure.records.trials import Trial, rates_of
from bench.measure.run.outlook import Outlook
from bench.measure.run.plan import Deployment, MeasuredCase, Measurement, deployments, round_of
from bench.measure.run.race import Races
from bench.measure.stats import Table
from bench.measure.stats.rate_search import FIRST_RATE, Limit, rate_near

# Minimum number of rounds of a run until decided; the noise is unknown before.
MIN_ROUNDS = 2
# The rate of the open loop, as a share of the slowest case that ties or leads.
LATENCY_SHARE = 0.5
# At a higher rate, the load tool itself would be late.
LATENCY_MAX_RATE = 2000
# Requests needed for a 99th percentile, and the maximum duration of their trial.
LATENCY_REQUESTS, LATENCY_MAX_S = 1100, 30

Place = tuple[str, str, str]  # workload, size, database


class Item(Protocol):
    """A trial or a fault on a deployment; its records have the same key."""

    @property
    def key(self) -> str: ...

    @property
    def deployment(self) -> Deployment: ...


ItemT = TypeVar("ItemT", bound=Item)
RecordT = TypeVar("RecordT", bound=Trial | FaultOutcome)
Ending = TypeVar("Ending")
# Of trials.
Schedule = Generator[Measurement, Trial, Ending]


class Replay(Generic[ItemT, RecordT]):
    """A schedule, and the records of a resumed run, which are sent through the schedule.

    item      the next item; None at the end
    ended_by  the reason for the end of the schedule
    """

    def __init__(self, schedule: Generator[ItemT, RecordT, Ended | None], records: Iterable[RecordT] = ()):
        self.item: ItemT | None = None
        self.ended_by: Ended | None = None
        self._schedule: Generator[ItemT, Any, Ended | None] = schedule
        self._records: dict[str, deque[RecordT]] = {}
        for record in records:
            self._records.setdefault(record.key, deque()).append(record)
        self.send(None)

    def send(self, record: RecordT | None) -> None:
        """Send the record of the item; None begins the schedule."""
        try:
            self.item = self._schedule.send(record)
            while known := self._records.get(self.item.key):
                self.item = self._schedule.send(known.popleft())
        except StopIteration as end:
            self.item, self.ended_by = None, end.value


def counting(records: Iterable[RecordT]) -> list[RecordT]:
    """The valid records: the last record of each item, unless discarded."""
    latest = {record.key: record for record in records}
    return [record for record in latest.values() if record.status != "discarded"]


def counting_steps(trials: Iterable[Trial]) -> list[Trial]:
    """The valid steps of staircases. Overload also discards a trial, but determines the rate."""
    return [trial for trial in trials if trial.status != "discarded" or overloaded(trial)]


def undisturbed(item: ItemT, repeats: int = MAX_REPEATS) -> Generator[ItemT, RecordT, RecordT]:
    """Make an item, again while other processes disturb it, up to a number of times."""
    record = yield item
    for _ in range(repeats):
        if not record.is_disturbed:
            break
        record = yield item
    return record


# ------------------------------------------------------------------------------------- runs of trials


def of_plan(plan: Plan, cases: Sequence[MeasuredCase], outlook: Outlook) -> Schedule[Ended | None]:
    """The schedule of a run."""
    if plan.capacity:
        yield from capacity(plan, plan.capacity, cases, outlook)
        return None
    schedule = until_decided if plan.until else rounds
    ended, trials = yield from schedule(plan, cases, outlook)
    if plan.latency:
        yield from at_one_rate(plan, cases, trials, outlook)
    return ended


def _trusted(item: Measurement, outlook: Outlook) -> Schedule[Trial]:
    trial: Trial = yield from undisturbed(item)
    outlook.note(trial)
    return trial


def rounds(plan: Plan, cases: Sequence[MeasuredCase], outlook: Outlook) -> Schedule[tuple[None, list[Trial]]]:
    """Every round; returns the trials."""
    order = []
    for number in range(1, plan.rounds + 1):
        order += round_of(cases, plan.levels, number, plan.order_seed or 0)
    outlook.certain = order
    trials = []
    for item in order:
        trials.append((yield from _trusted(item, outlook)))
    return None, trials


def until_decided(plan: Plan, cases: Sequence[MeasuredCase], outlook: Outlook) -> Schedule[tuple[Ended, list[Trial]]]:
    """Rounds without the cases that cannot be the best any more; returns the reason for the end, and the trials.

    Rounds are never cut short: the cases measured last would have fewer figures. The first two are always made,
    whatever the time limit: one round proves nothing.
    """
    seed = plan.order_seed or 0
    races = Races(round_of(cases, plan.levels, 1, seed), plan.margin)
    trials: list[Trial] = []
    for number in range(1, plan.rounds + 1):
        due = [item for item in round_of(cases, plan.levels, number, seed) if races.needs(item)]
        outlook.certain = due
        if not due:
            break
        needed = list(due)
        if plan.latency:
            # A decision comes first: time is left for the open loop of the fastest only.
            needed += next(iter(latency(plan, cases, trials, outlook)), [])
        if number > MIN_ROUNDS and not outlook.fits(needed):
            return "budget", trials
        for item in due:
            trial = yield from _trusted(item, outlook)
            races.add(trial)
            trials.append(trial)
        races.update(number)
        outlook.rounds_over, outlook.dropped = number, races.dropped
    outlook.certain = []
    if races.are_decided:
        return "decided", trials
    return "rounds", trials


def at_one_rate(plan: Plan, cases: Sequence[MeasuredCase], trials: Sequence[Trial], outlook: Outlook) -> Schedule[None]:
    """An open loop at one rate for all cases: the latency of a saturated site is not a visitor's.

    The fastest cases come first, as the best use of the time.
    """
    for together in latency(plan, cases, trials, outlook):
        if outlook.fits(together):
            for item in together:
                yield from _trusted(item, outlook)


def latency(
    plan: Plan, cases: Sequence[MeasuredCase], trials: Sequence[Trial], outlook: Outlook
) -> list[list[Measurement]]:
    """Measurements at the rate of their workload, size and database, by deployment, the fastest first.

    A case with a lower maximum of requests a second cannot hold the rate, and is left out.
    """
    held: dict[str, list[float]] = {}
    for trial in trials:
        if trial.status == "ok":
            held.setdefault(trial.case_id, []).append(trial.throughput or 0.0)
    rates: dict[Place, int] = {}
    for place in {_place(case.record) for case in cases}:
        # A resumed run goes on at its first rate.
        begun = [trial.level for trial in outlook.done.values() if trial.mode == "open" and _place(trial) == place]
        if begun:
            rates[place] = begun[0]
            continue
        alike = [trial for trial in trials if _place(trial) == place]
        rates[place] = rate_for_all(alike, plan.margin)
    pairs: list[tuple[float, list[Measurement]]] = []
    for served_alike in deployments(cases):
        deployment = Deployment(served_alike[0].served, 1)
        items, fastest = [], 0.0
        for case in served_alike:
            rate = rates[_place(case.record)]
            most = statistics.median(held.get(case.record.case_id, [0.0]))
            if rate and most > rate:
                seconds = max(1, min(LATENCY_MAX_S, math.ceil(LATENCY_REQUESTS / rate)))
                items.append(Measurement(case.record, rate, 1, deployment, rate=rate, seconds=seconds))
                fastest = max(most, fastest)
        if items:
            pairs.append((fastest, items))
    return [items for _, items in sorted(pairs, key=lambda pair: -pair[0])]


def rate_for_all(trials: Sequence[Trial], margin: float) -> int:
    """Half of the requests/s of the slowest case that ties or leads, over all levels; 0 before that is known."""
    medians = []
    for level in {trial.level for trial in trials}:
        rates = rates_of(trial for trial in trials if trial.level == level)
        if max(map(len, rates.values()), default=0) < MIN_ROUNDS:
            return 0
        decision = Table(rates).decide(margin)
        best = [name for name in (decision.best, *decision.ties, *decision.open) if name]
        medians.append(min(statistics.median(rates[name].values()) for name in best))
    if not medians:
        return 0
    return max(1, min(LATENCY_MAX_RATE, round(LATENCY_SHARE * min(medians))))


def _place(case: CaseRecord | Trial) -> Place:
    """The conditions under which cases are compared."""
    return case.workload, case.size, case.database


# ------------------------------------------------------------------------------------- capacities


def capacity(plan: Plan, limit: Limit, cases: Sequence[MeasuredCase], outlook: Outlook) -> Schedule[None]:
    """A staircase of rates for each case in each round."""
    order = []
    for number in range(1, plan.rounds + 1):
        order += round_of(cases, (0,), number, plan.order_seed or 0)
    ends: dict[str, list[int]] = {}
    for number, item in enumerate(order):
        outlook.certain = order[number:]
        climbed = yield from climb(item, limit, outlook, ends.get(item.case.case_id, []))
        if climbed.low is not None:
            ends.setdefault(item.case.case_id, []).append(climbed.low)
    outlook.certain = []


def climb(
    item: Measurement, limit: Limit, outlook: Outlook, before: Sequence[int], near: int = 0
) -> Schedule[Staircase]:
    """The staircase of a case in a round, whatever the level of the item.

    before  final rates of earlier rounds; the higher of the two middle ones is a whole step
    near    the starting rate without earlier rounds; 0 if unknown
    """
    if before:
        near = statistics.median_high(before)
    first = FIRST_RATE
    if near:
        first = rate_near(near)
    staircase = Staircase(limit)
    while (rate := staircase.next_rate(first, near=bool(near))) is not None:
        trial = yield replace(item, level=rate)
        outlook.note(trial)
        staircase.add(trial)
    return staircase
