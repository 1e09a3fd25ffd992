"""Lines printed by a run and a verification, and the live line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bench.measure.records.capacity import (
    Capacity,
    Staircase,
    Visits,
    capacity,
    climbs,
    latency_ms,
    overloaded,
    visits,
)
from bench.measure.records.folder import Run
from bench.measure.records.records import CaseRecord, RunInfo
from bench.measure.records.trials import Trial
from bench.measure.run.outlook import Outlook
from bench.measure.run.plan import Measurement
from bench.measure.stats.rate_search import Limit
from bench.printer import Printer
from bench.serve.catalog.names import NO_LIMIT
from bench.serve.machine.processes import MachineLoad
from bench.verify.summary import by_reason
from bench.words import command_line, duration, estimate, interval_text, plural


class RunProgress:
    """Prints the state of a run, and the time left, by its outlook."""

    def __init__(self, printer: Printer, info: RunInfo, outlook: Outlook):
        self.printer = printer
        self.outlook = outlook
        self._info = info
        self._limit = info.plan.capacity
        self._rounds_over, self._dropped = outlook.rounds_over, len(outlook.dropped)

    @property
    def scope(self) -> str:
        """Number of cases, and their estimated duration."""
        time = estimate(self.outlook.estimate_s(self.outlook.left))
        each = ""
        if self._info.plan.until:
            each = " a round"
        return f"{plural(len(self._info.cases), 'case')}, in about {time}{each}"

    def announce(self, tool: str, folder: Path | None = None) -> None:
        """Print the plan, its estimated duration, and skipped cases; a `folder` is for the results."""
        plan, left = self._info.plan, self.outlook.left
        due = plural(self.outlook.count(left), "trial")
        levels = " and ".join(level_words(level, plan.mode) for level in plan.levels)
        if self._limit:
            due = f"about {due}"
            levels = f"the highest rate with {self._limit.words}"
        if plan.until:
            due += " in the next round"
        counts = f"{plural(len(self._info.cases), 'case')}, {due}, load by {tool}"
        self.printer.say(f"{counts}, in about {estimate(self.outlook.estimate_s(left))}")
        if plan.until:
            self.printer.say(
                f"each case: {levels}, {plan.duration_s:g} s a round, until it cannot be the best any more"
            )
            limit = ""
            if plan.budget_s:
                limit = f" or {duration(plan.budget_s)}"
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
        """Print a warning with the busiest program and advice if the machine is busy beyond the guard's bound."""
        if (load.share or 0) > bound:
            self.printer.say(
                f"warning: {load.words}; trials beyond {bound:.0%} are discarded: stop those programs, or begin again "
                "with --guard interference=off --guard drift=off"
            )

    def begin(self, item: Measurement) -> None:
        """Note the beginning of a trial."""
        level = level_words(item.level, self._info.plan.mode)
        if item.rate:
            level = level_words(item.rate, "open")
        self.printer.show(f"{case_words(item.case)}, {level}")

    def finish(self, record: Trial, again: bool) -> None:
        """Print the outcome of a trial, and after a round the state of the race."""
        if again:
            self.printer.say(f"{record.reason}: the trial is repeated")
            return
        words = f"{level_words(record.level, record.mode)}: {outcome(record)}"
        step = self._limit and step_words(record, self._limit)
        if step:
            words += f", {step}"
        self.printer.say(f"{self.where(record)}, {words}{self.left(record)}")
        if self.outlook.rounds_over > self._rounds_over:
            self._after_round()

    def _after_round(self) -> None:
        outlook = self.outlook
        new = len(outlook.dropped) - self._dropped
        self._rounds_over, self._dropped = outlook.rounds_over, len(outlook.dropped)
        words = "no case dropped"
        if new:
            words = f"{plural(new, 'case')} dropped"
        left = len(outlook.left)
        next_round = "no rounds left"
        if left:
            next_round = f"{plural(left, 'trial')} in the next round"
        self.printer.say(f"after round {outlook.rounds_over}: {words}; {next_round}")

    def where(self, trial: Trial) -> str:
        """Describe the trial in words."""
        plan = self._info.plan
        if trial.mode != plan.mode:
            return f"latency at one rate for all: {case_words(trial)}"
        rounds = f"{plan.rounds}"
        if plan.until:
            rounds = f"at most {plan.rounds}"
        begun = set()
        for done in self.outlook.done.values():
            if done.mode == plan.mode and done.round == trial.round:
                begun.add(done.case_id)
        due = {item.case.case_id for item in self.outlook.left if item.round == trial.round}
        return f"round {trial.round} of {rounds}, case {len(begun)} of {len(begun | due)}: {case_words(trial)}"

    def left(self, trial: Trial) -> str:
        """The time left after a trial, as the end of a line; in a run until decided, the time of its round."""
        words, left = "time left", self.outlook.left
        if self._info.plan.until:
            words = "time left in this round"
            left = [item for item in left if item.round == trial.round]
        if not left:
            return "; done"
        return f"; {words} ~{estimate(self.outlook.estimate_s(left))}"

    def summarize(self, run: Run) -> None:
        """Print capacities, the number of trials without trusted figures, and the next command."""
        if self._limit:
            for case in run.info.cases:
                trials = [trial for trial in run.trials if trial.case_id == case.case_id]
                if trials:
                    visit = visits(run.addresses).get(case.workload)
                    words = capacity_words(trials, self._limit, visit)
                    self.printer.say(f"capacity of {case_words(case)}: {words}")
        planned = len(run.latest_of_all) + max(run.missing, 0)
        if failures := count_of(run, "failed"):
            self.printer.say(f"{failures} of {planned} trials failed")
        if discarded := count_of(run, "discarded"):
            again = run.resume_command()
            self.printer.say(f"{discarded} of {planned} trials discarded as unreliable; repeat them with: {again}")
        if not run.is_measured:
            self.printer.say("nothing was measured")
        self.printer.say(f"results in {run.directory}; next: {command_line('report', run.directory)}")


def count_of(run: Run, status: str) -> int:
    """Number of trials with a status, `failed` or `discarded`, after their last attempt.

    Overload in a staircase is no failure of the run.
    """
    limit = run.info.plan.capacity
    if limit:
        trials: list[Trial] = []
        for by_round in climbs(run.trials, limit).values():
            for climb in by_round.values():
                trials += climb.in_doubt
    else:
        trials = list(run.latest_of_all.values())
    return sum(trial.status == status for trial in trials)


def step_words(trial: Trial, limit: Limit) -> str:
    """True if a rate held, in words: `p95 35.2 ms, holds`."""
    latency = None
    if trial.status == "ok":
        latency = latency_ms(trial, limit)
    if latency is None:
        if overloaded(trial):
            return "does not hold"
        return ""
    words = f"{limit.percentile} {latency:,.1f} ms"
    if latency <= limit.milliseconds:
        return f"{words}, holds"
    return f"{words}, does not hold"


def capacity_words(trials: Iterable[Trial], limit: Limit, visit: Visits | None) -> str:
    """The capacity of a case, from its trials, in words."""
    climbed: list[Staircase] = []
    for by_round in climbs(trials, limit).values():
        climbed += by_round.values()
    result = capacity(climbed)
    if result is None:
        return f"no rate holds {limit.words}"
    words = f"{rate_words(result)} with {limit.words}"
    if visit:
        words += f", {visit.an_hour(result.rate):,.0f} visitors an hour, each for {plural(visit.pages, 'page')}"
    return words


def rate_words(result: Capacity) -> str:
    """`500 requests/s (475 to 530)`; a single round is mentioned."""
    rounds = ""
    if result.rounds == 1:
        rounds = "; one round"
    return f"{result.rate:,.0f} requests/s ({interval_text(result.low, result.high)}{rounds})"


def case_words(case: CaseRecord | Trial) -> str:
    """A case, or the case of a trial, in words; the size only if limited."""
    size = ""
    if case.size != NO_LIMIT:
        size = f", {case.size}"
    return f"{case.stack}, layer {case.layer}, {case.workload}{size}"


def level_words(level: int, mode: str) -> str:
    """A level in words."""
    if mode == "closed":
        return f"{level:,} connections"
    return f"{level:,} requests/s due"


def outcome(trial: Trial) -> str:
    """A trial in a few words."""
    if trial.status == "failed":
        if trial.evidence.log:
            return f"failed: {trial.reason} (see {trial.evidence.log})"
        return f"failed: {trial.reason}"
    words = f"{trial.throughput:,.0f} requests/s"
    if trial.mode == "open" and trial.figures and trial.figures.latency_p99_ms is not None:
        words += f", p99 {trial.figures.latency_p99_ms:,.1f} ms"
    if trial.status == "ok":
        return words
    return f"{words}, discarded: {trial.reason}"
