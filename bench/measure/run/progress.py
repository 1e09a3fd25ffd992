"""What a run and a verification show as they go on: a line a trial, the current trial or check on the live line, and
about how long the rest takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import PROGRAM
from bench.measure.records.capacity import visits
from bench.measure.records.folder import Run
from bench.measure.records.records import CaseRecord, Plan, RunInfo, warmup_s
from bench.measure.records.trials import Trial
from bench.measure.run.ledger import Ledger, Record
from bench.measure.run.plan import Batch, Item, Measurement
from bench.measure.run.staircase import capacity_words, step_words
from bench.measure.stats.capacity import parse_limit
from bench.printer import Printer
from bench.serve.catalog.names import NO_LIMIT
from bench.serve.deployment import connections
from bench.serve.machine.processes import MachineLoad
from bench.verify.check import Check
from bench.verify.table import by_reason
from bench.words import duration, estimate, plural

# It takes so long to start and stop a deployment once, to verify it, and to make a trial besides its warm-up and load.
UP_S = 4.0
VERIFY_S = 15.0
AROUND_TRIAL_S = 1.5


def show_check(printer: Printer, words: str = "") -> Callable[[int, int, Check], None]:
    """Shows each check as it begins, on a terminal; `words` begin the line."""

    def show(done: int, total: int, item: Check) -> None:
        printer.show(f"{words}{done} of {total} checks, {item.group}: {item.name}")

    return show


class Pace:
    """Learns from each batch how long its deployment takes beside the load of its trials.

    A batch in which the deployment was verified says nothing of the next one, in which it is not.
    """

    def __init__(self, plan: Plan, ledger: Ledger, clock: Callable[[], float] = time.monotonic):
        self._plan, self._ledger, self._clock = plan, ledger, clock
        self._began = clock()
        self._beside: dict[str, float] = {}

    @contextmanager
    def learning(self, batch: Batch) -> Iterator[None]:
        """A batch that is made in the block."""
        began, was_verified, load_s = self._clock(), self._ledger.is_verified(batch), self._load_s(batch)
        yield
        if was_verified:
            self._beside[batch.name] = max(0.0, self._clock() - began - load_s)

    def fits(self, batches: Iterable[Batch]) -> bool:
        """Whether these batches can be made within the budget of the plan; also when nothing is known of batches."""
        limit_s = self._plan.budget_s
        if limit_s is None or not self._beside:
            return True
        return self._clock() - self._began + self.estimate_s(batches) <= limit_s

    def estimate_s(self, batches: Iterable[Batch]) -> float:
        """About how many seconds these batches take."""
        batches = list(batches)
        new = {(batch.stack, batch.layer) for batch in batches if not self._ledger.is_verified(batch)}
        return VERIFY_S * len(new) + sum(self._load_s(batch) + self._beside_s(batch) for batch in batches)

    def _load_s(self, batch: Batch) -> float:
        """Seconds of load: with PostgreSQL also the wait after it until connections that are left are counted."""
        seconds = [getattr(item, "seconds", None) or self._plan.duration_s for item in batch.items]
        left_s = connections.LEFT_S if self._plan.database.startswith("postgres") else 0
        each = statistics.fmean(warmup_s(load_s) + load_s + left_s for load_s in seconds)
        return each * self._ledger.expected([batch])

    def _beside_s(self, batch: Batch) -> float:
        """Seconds beside the load: as the last time, else as those of the others, and usual ones at first."""
        usual_s = UP_S + AROUND_TRIAL_S * self._ledger.expected([batch])
        others_s = statistics.fmean(self._beside.values()) if self._beside else usual_s
        return self._beside.get(batch.name, others_s)


class RunProgress:
    """Says where a run stands by its ledger; `pace` says how long the rest takes."""

    def __init__(self, printer: Printer, info: RunInfo, ledger: Ledger):
        self.printer = printer
        self.pace = Pace(info.plan, ledger)
        self._info, self._ledger = info, ledger
        self._limit = parse_limit(info.plan.capacity, "capacity") if info.plan.capacity else None

    def announce(self, tool: str, folder: Path | None = None) -> None:
        """Print what will be measured, about how long that takes, and what is skipped; a `folder` gets the results."""
        plan = self._info.plan
        roughly = "about " if self._limit else ""
        due = f"{plural(self._ledger.count_left, 'trial')}{' in the next round' if plan.until else ''}"
        counts = f"{plural(len(self._info.cases), 'case')}, {roughly}{due} to make by {tool}"
        levels = " and ".join(level_words(level, plan.mode) for level in plan.levels)
        levels = f"the highest rate with {self._limit.words}" if self._limit else levels
        self.printer.say(f"{counts}, in about {estimate(self.pace.estimate_s(self._ledger.certain))}")
        if plan.until:
            self.printer.say(
                f"each case: {levels}, {plan.duration_s:g} s a round, until it cannot be the best any more"
            )
            limit = f" or {duration(plan.budget_s)}" if plan.budget_s else ""
            self.printer.say(f"rounds: until one case leads or the rest tie, at most {plan.rounds}{limit}")
        else:
            self.printer.say(f"each case: {levels}, {plural(plan.rounds, 'round')} of {plan.duration_s:g} s")
        if folder:
            self.printer.say(f"results go to {folder}")
        for line in by_reason(self._info.skips):
            self.printer.say(f"skipped: {line}")
        for note in self._info.notes:
            self.printer.say(f"note: {note}")
        if folder:
            self.printer.show("looking at the database and the machine")

    def warn_of_load(self, load: MachineLoad, bound: float) -> None:
        """Print that the machine is busy, by whom and what to do, if it is busy beyond the guard's bound."""
        if (load.share or 0) > bound:
            self.printer.say(
                f"warning: {load.words}; trials beyond {bound:.0%} are voided: stop those programs, or begin again "
                "with --guard interference=off"
            )

    def look(self, number: int, dropped: int, left: int) -> None:
        """Print how a run until decided stands after a round: cases dropped, trials of the next round."""
        words = f"{plural(dropped, 'case')} dropped" if dropped else "no case dropped"
        next_round = f"{plural(left, 'trial')} in the next round" if left else "no round is left to make"
        self.printer.say(f"after round {number}: {words}; {next_round}")

    def begin(self, item: Item, batch: Batch) -> None:
        """Note the trial that begins."""
        assert isinstance(item, Measurement)
        level, mode = (item.rate, "open") if item.rate else (item.level, self._info.plan.mode)
        self.printer.show(f"{case_words(item.case)}, {level_words(level, mode)}")

    def made(self, record: Record, again: bool) -> None:
        """Print the outcome of a trial."""
        assert isinstance(record, Trial)
        if again:
            self.printer.say(f"{record.reason}: the trial is repeated")
            return
        step = f", {words}" if self._limit and (words := step_words(record, self._limit)) else ""
        words = f"{level_words(record.level, record.mode)}: {outcome(record)}{step}"
        self.printer.say(f"{self.where(record)}, {words}{self.left(record)}")

    def where(self, trial: Trial) -> str:
        """Which trial it was, in words."""
        plan = self._info.plan
        if trial.mode != plan.mode:
            return f"latency at one rate for all: {case_words(trial)}"
        rounds = f"at most {plan.rounds}" if plan.until else str(plan.rounds)
        records = (it for it in self._ledger.done.values() if isinstance(it, Trial) and it.mode == plan.mode)
        begun = {record.case_id for record in records if record.round == trial.round}
        due = [item for batch in self._ledger.left if batch.round == trial.round for item in batch.items]
        all_cases = begun | {item.case.case_id for item in due if isinstance(item, Measurement)}
        return f"round {trial.round} of {rounds}, case {len(begun)} of {len(all_cases)}: {case_words(trial)}"

    def left(self, trial: Trial) -> str:
        """What is left after a trial, in words that end a line: in a run until decided of its round."""
        until = self._info.plan.until
        batches = [batch for batch in self._ledger.certain if not until or batch.round == trial.round]
        if not batches:
            return "; done"
        return f"; time left{' in this round' if until else ''} ~{estimate(self.pace.estimate_s(batches))}"

    def summarize(self, run: Run) -> None:
        """Print the capacity of each case where it was sought, how many trials failed or are void, and what is next."""
        if self._limit:
            for case in run.info.cases:
                if trials := [trial for trial in run.trials if trial.case_id == case.case_id]:
                    visit = visits(run.addresses).get(case.workload)
                    words = capacity_words(trials, self._limit, visit)
                    self.printer.say(f"capacity of {case_words(case)}: {words}")
        planned = len({trial.trial_id for trial in (*run.trials, *run.latency)}) + max(run.missing, 0)
        if failures := self._ledger.count("failed"):
            self.printer.say(f"{failures} of {planned} trials failed")
        if voided := self._ledger.count("voided"):
            again = run.resume_command()
            self.printer.say(f"{voided} of {planned} trials voided: guards do not trust them; again with: {again}")
        if not run.is_measured:
            self.printer.say("nothing was measured")
        self.printer.say(f"results in {run.directory}; next: {PROGRAM} report {run.directory}")


def case_words(case: CaseRecord | Trial) -> str:
    """A case, or the case of a trial, in words; the size only where there is one."""
    size = "" if case.size == NO_LIMIT else f", {case.size}"
    return f"{case.stack}, layer {case.layer}, {case.workload}{size}"


def level_words(level: int, mode: str) -> str:
    """A level in words."""
    return f"{level:,} connections" if mode == "closed" else f"{level:,} requests/s due"


def outcome(trial: Trial) -> str:
    """A trial in a few words."""
    if trial.status == "failed":
        return f"FAILED: {trial.reason}" + (f" (see {trial.log})" if trial.log else "")
    words = f"{trial.requests_per_second:,.0f} requests/s"
    if trial.mode == "open" and trial.latency_p99_ms is not None:
        words += f", p99 {trial.latency_p99_ms:,.1f} ms"
    return words if trial.status == "ok" else f"{words}, VOIDED: {trial.reason}"
