"""Find the settings of a stack on the real thing: a run of capacities whose cases follow from those before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bench.errors import BenchError
from bench.interrupt import Interrupts
from bench.measure.records.trials import Trial
from bench.measure.run import plan, plan_run
from bench.measure.run.instrument import Instrument
from bench.measure.run.plan import Batch, Measurement, PlannedCase, Request
from bench.measure.run.plan_run import PlannedRun
from bench.measure.run.progress import RunProgress
from bench.measure.run.staircase import rate_words
from bench.measure.run.tuning import KNOBS, PROCESSES, Candidate, Search, Settings, TuningSpace
from bench.measure.stats.capacity import parse_limit
from bench.measure.stats.columns import paragraph
from bench.printer import Printer
from bench.serve.catalog import catalog, values
from bench.serve.catalog.values import BENCH, PRODUCTION
from bench.serve.deployment import render
from bench.serve.deployment.case import CannotRun, for_files
from bench.serve.project.opened import UnderTest


class TuneProgress(RunProgress):
    """Names trials by their settings; how many are left nobody knows."""

    settings: Settings

    def where(self, trial: Trial) -> str:
        """The settings and the round."""
        return f"{self.settings.words}, round {trial.round}"

    def left(self, trial: Trial) -> str:
        """Nothing: the search ends when it has found the knee."""
        return ""


def tunable(project: UnderTest, stack: str, layer: str, changes: Sequence[str]) -> TuningSpace:
    """The stack with its settings, and these changes of values. Raises BenchError when it has none, or the layer does
    not fit."""
    chosen = catalog.read().values[BENCH].changed(values.parse_changes(list(changes)))
    case = for_files(project, stack, layer, chosen)
    used = render.names_used(case)
    knobs = tuple(knob for knob in KNOBS if knob in used)
    if not knobs:
        raise BenchError(f"tune {stack}: it has neither processes nor threads to set; try another stack")
    processes, threads = (int(case.settings[knob]) for knob in KNOBS)
    fewer = KNOBS if len(case.servers) > 1 else (PROCESSES,)
    return TuningSpace(stack, knobs, Settings(processes, threads, case.servers[0].worker_class), fewer)


def of_other_classes(name: str) -> list[str]:
    """The usual stacks of the same servers with another worker class."""
    known = catalog.read()
    mine = known.stack(name)
    if not (own := mine.servers[0].worker_class):
        return []
    chain = [server.name for server in mine.servers]
    alike = [known.stacks[other] for other in known.usual_stacks]
    alike = [other for other in alike if [server.name for server in other.servers] == chain]
    return [other.name for other in alike if other.servers[0].worker_class not in ((), own)]


class Tuner:
    """The search on real deployments.

    stack    without settings
    layer    of all
    search   says what is tried
    limit    of the latency
    skipped  stacks of other worker classes that cannot run here, with the reason
    """

    def __init__(self, new: PlannedRun, to: Path | None, instrument: Instrument, printer: Printer):
        assert new.ledger.staircases
        plan, self._first, self._staircases = new.info.plan, new.cases[0], new.ledger.staircases
        self.stack, self.layer, self._rounds = plan.tunes, plan.layers[0], plan.rounds
        self.limit = parse_limit(plan.capacity, "--capacity")
        self._resolve = instrument.resolver(plan, self._first.served.database)
        self.skipped: dict[str, str] = {}
        own = tunable(instrument.project, self.stack, self.layer, plan.changes)
        others = []
        for name in of_other_classes(self.stack):
            case = self._resolve(name, self.layer)
            if isinstance(case, CannotRun):
                self.skipped[name] = case.reason
            else:
                others.append(tunable(instrument.project, name, self.layer, plan.changes))
        self._progress = TuneProgress(printer, new.info, new.ledger)
        self.session = new.session(to, self._progress)
        size = self._first.served.size
        machine = self.session.journal.environment
        memory = size.limits.burstable_bytes if size.is_limited else machine.memory_bytes
        self.search = Search(own, plan.margin, memory, others)
        self._cases: dict[Settings, PlannedCase] = {}

    @property
    def directory(self) -> Path:
        """Of the run."""
        return self.session.journal.folder.directory

    def go(self, interrupts: Interrupts) -> None:
        """Try settings until the end of the search."""
        work, printer = self._first.record.workload, self._progress.printer
        printer.say(f"tune {self.stack}, layer {self.layer}, {work}: the highest rate with {self.limit.words}")
        printer.say(f"results go to {self.directory}")
        printer.show("looking at the database and the machine")
        self.session.go(self._batches(), interrupts)

    def _batches(self) -> Iterator[Batch]:
        for settings, number, near in self.search.steps(self._rounds, self._tried):
            case = self._case(settings)
            self._progress.settings = settings
            yield Batch(case.served, number, (Measurement(case.record, 0, number, near=near),))

    def _tried(self, settings: Settings) -> Candidate:
        """All that is known of the settings."""
        found = Candidate(settings, dict(self._staircases.rounds_of(self._case(settings).record.case_id)))
        held = f"{rate_words(found.capacity)} in {found.memory}" if found.capacity else found.problem
        self._progress.printer.say(f"{settings.words}: {held}")
        return found

    def _case(self, settings: Settings) -> PlannedCase:
        if settings not in self._cases:
            name = self.search.of(settings).variant(settings)
            case = self._resolve(name, self.layer)
            if isinstance(case, CannotRun):
                raise BenchError(f"{name} with layer {self.layer} cannot run here: {case.reason}")
            served = replace(case, size=self._first.served.size)
            record = plan.record(served, self._first.record.workload)
            self.session.journal.case(record)
            self._cases[settings] = PlannedCase(record, served)
        return self._cases[settings]

    @property
    def sentence(self) -> str:
        """The answer, or that there is none."""
        if not self.search.chosen:
            return f"No settings hold {self.limit.words}."
        return self.search.sentence(self.layer, self.limit.words)

    @property
    def values(self) -> str:
        """The settings to take as a file for `render --values`."""
        lines = [f"# {line}" for line in paragraph(self.sentence, 100)]
        chosen = self.search.chosen
        assert chosen
        knobs = self.search.of(chosen.settings).knobs
        return "\n".join(
            [*lines, f'base = "{PRODUCTION}"', *(f"{knob} = {getattr(chosen.settings, knob)}" for knob in knobs), ""]
        )


def begun(request: Request, instrument: Instrument, printer: Printer) -> Tuner:
    """A new search for the settings of the request's stack, its folder made. Raises BenchError."""
    (stack,), (layer,) = request.stacks, request.layers
    if any(change.partition("=")[0] in KNOBS for change in stack.partition("@")[2].split(",")):
        raise BenchError(f"tune {stack}: it finds processes and threads by itself; leave them out")
    parse_limit(request.capacity, "--capacity")
    own = tunable(instrument.project, stack, layer, request.changes)
    new = plan_run.planned(replace(request, tunes=stack, stacks=(own.variant(own.usual),)), instrument)
    return Tuner(new, request.output, instrument, printer)


def resumed(directory: Path, asked: str | None, instrument: Instrument, printer: Printer) -> Tuner:
    """The search in a folder; `asked` is its database. Raises BenchError when it cannot be resumed as it began."""
    return Tuner(plan_run.resumed(directory, asked, instrument, "tune"), None, instrument, printer)
