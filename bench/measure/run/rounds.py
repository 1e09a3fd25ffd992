"""The rounds of a run, one after the other: all of them, or until the run is decided or its time is up.

After the rounds of a closed loop each case is measured in an open loop, at one rate for all: a saturated site has no
latency that a visitor would know.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from bench.measure.records.records import CaseRecord
from bench.measure.records.trials import Trial, rates_of
from bench.measure.run.ledger import Ledger
from bench.measure.run.plan import Batch, Measurement, PlannedCase, deployments
from bench.measure.run.progress import RunProgress
from bench.measure.run.session import Journal
from bench.measure.stats import Table

# Rounds that a run until decided always makes; before them nothing is known of the noise either.
MIN_ROUNDS = 2
# The rate of the open loop is this share of what the slowest case holds that ties or leads.
LATENCY_SHARE = 0.5
# Faster than that the load tool itself would be what is late.
LATENCY_MAX_RATE = 2000
# Requests that show a 99th percentile, and how long a trial lasts for them at most.
LATENCY_REQUESTS, LATENCY_MAX_S = 1100, 30


def batches(cases: Sequence[PlannedCase], ledger: Ledger, journal: Journal, progress: RunProgress) -> Iterator[Batch]:
    """What a ledger has left, in the order in which it is to be made.

    Rounds are whole: of a part of one, the cases measured last would have fewer figures. The first two are always made,
    whatever the budget: one round proves nothing.
    """
    plan, pace, racing = journal.info.plan, progress.pace, ledger.racing

    def at_rate() -> list[Batch]:
        return ledger.left_of(latency(cases, ledger, plan.margin)) if plan.latency else []

    if racing is None:
        yield from ledger.left
    while racing and not journal.ended_by:
        due = ledger.next_round
        if not due:
            journal.ended_by = "decided" if racing.decided else "rounds"
        elif due[0].round > MIN_ROUNDS and not pace.fits([*due, *at_rate()[:1]]):
            # A decision comes first: time is left for the open loop of the fastest alone.
            journal.ended_by = "budget"
        else:
            # Also what a run that was stopped had no time to record.
            journal.drop(racing.dropped)
            for batch in due:
                with pace.learning(batch):
                    yield batch
            progress.look(due[0].round, journal.drop(racing.dropped), ledger.count_left)
    for batch in at_rate():
        # The fastest come first: those are what the time is best spent on.
        if pace.fits([batch]):
            with pace.learning(batch):
                yield batch


def latency(cases: Sequence[PlannedCase], ledger: Ledger, margin: float) -> list[Batch]:
    """A batch for each case that holds the rate of its workload, size and database, the fastest first.

    A case that answers fewer requests a second as fast as it can does not hold it, and is left out.
    """
    trials = [record for record in ledger.done.values() if isinstance(record, Trial)]
    closed = [trial for trial in trials if trial.mode == "closed"]
    answered: dict[str, list[float]] = {}
    for trial in closed:
        if trial.status == "ok":
            answered.setdefault(trial.case_id, []).append(trial.requests_per_second or 0.0)
    rates: dict[tuple[str, str, str], int] = {}
    for place in {_place(case.record) for case in cases}:
        # A run that is resumed goes on at the rate at which it began.
        begun = [trial.level for trial in trials if trial.mode == "open" and _place(trial) == place]
        rates[place] = begun[0] if begun else rate_for_all([it for it in closed if _place(it) == place], margin)
    found: list[tuple[float, Batch]] = []
    for alike in deployments(cases):
        items, held = [], 0.0
        for case in (it.record for it in alike):
            rate, most = rates[_place(case)], statistics.median(answered.get(case.case_id, [0.0]))
            if rate and most > rate:
                seconds = max(1, min(LATENCY_MAX_S, math.ceil(LATENCY_REQUESTS / rate)))
                items.append(Measurement(case, rate, 1, rate=rate, seconds=seconds))
                held = max(most, held)
        if items:
            found.append((held, Batch(alike[0].served, 1, tuple(items))))
    return [batch for _, batch in sorted(found, key=lambda it: -it[0])]


def _place(case: CaseRecord | Trial) -> tuple[str, str, str]:
    """Where cases are compared."""
    return case.workload, case.size, case.database


def rate_for_all(trials: Sequence[Trial], margin: float) -> int:
    """Half of the requests/s of the slowest case that ties or leads, over all levels; 0 before that is known."""
    found = []
    for level in {trial.level for trial in trials}:
        rates = rates_of(trial for trial in trials if trial.level == level)
        if max(map(len, rates.values()), default=0) < MIN_ROUNDS:
            return 0
        decision = Table(rates).decide(margin)
        best = (decision.best, *decision.ties, *decision.open)
        found.append(min(statistics.median(rates[name].values()) for name in best if name))
    return max(1, min(LATENCY_MAX_RATE, round(LATENCY_SHARE * min(found)))) if found else 0
