"""Find the settings of a stack on the real thing: a run of capacities whose cases follow from those before."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bench.catalog import catalog, values
from bench.catalog.values import BENCH, PRODUCTION, Values
from bench.errors import BenchError
from bench.figures.capacity import Limit, parse_limit
from bench.figures.columns import paragraph
from bench.interrupt import Interrupts
from bench.measure import begin, plan, tuning
from bench.measure.begin import Request
from bench.measure.instrument import Instrument
from bench.measure.ledger import Ledger
from bench.measure.plan import Batch, Measurement, PlannedCase
from bench.measure.printer import Printer
from bench.measure.progress import RunProgress
from bench.measure.staircase import rate_words
from bench.measure.trial import now
from bench.measure.tuning import KNOBS, Answer, Room, Search, Settings, Tried
from bench.project.under_test import UnderTest
from bench.results.records import RunInfo
from bench.results.trials import Trial
from bench.serve import database, render
from bench.serve.case import CannotRun, for_files


class TuneProgress(RunProgress):
    """Names trials by their settings; how many are left nobody knows."""

    def __init__(self, printer: Printer, info: RunInfo, limit: Limit):
        super().__init__(printer, info, 0)
        self._case, self._words = info.cases[0], limit.words
        self.settings: Settings | None = None

    def announce(self, tool: str, ledger: Ledger, folder: object = None) -> None:
        """Print what is sought, and where the results go."""
        case = self._case
        name = case.stack.partition("@")[0]
        self.printer.say(f"tune {name}, layer {case.layer}, {case.workload}: the highest rate with {self._words}")
        self.printer.say(f"results go to {folder}")
        self.printer.show("looking at the database and the machine")

    def where(self, trial: Trial) -> str:
        """The settings and the round."""
        return f"{self.settings.words if self.settings else ''}, round {trial.round}"

    def left(self) -> str:
        """Nothing: the search ends when it has found the knee."""
        return ""


@dataclass(frozen=True)
class Tunable:
    """A stack whose settings can be found: what it has by itself, and those of KNOBS that it uses."""

    stack: str
    knobs: tuple[str, ...]
    usual: Settings

    def variant(self, settings: Settings) -> str:
        """The name of the stack with these settings."""
        joined = "," if "@" in self.stack else "@"
        return f"{self.stack}{joined}" + ",".join(f"{knob}={getattr(settings, knob)}" for knob in self.knobs)


def tunable(project: UnderTest, stack: str, layer: str, chosen: Values) -> Tunable:
    """The stack with its settings. Raises BenchError when it has none, or the layer does not fit."""
    case = for_files(project, stack, layer, chosen)
    used = render.names_used(case)
    knobs = tuple(knob for knob in KNOBS if knob in used)
    if not knobs:
        raise BenchError(f"tune {stack}: it has neither processes nor threads to set; try another stack")
    processes, threads = (int(case.settings[knob]) for knob in KNOBS)
    return Tunable(stack, knobs, Settings(processes, threads, case.servers[0].worker_class))


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
    search   says what is tried
    limit    of the latency
    skipped  stacks of other worker classes that cannot run here, with the reason
    """

    def __init__(self, request: Request, instrument: Instrument, printer: Printer):
        (self.stack,) = request.stacks
        (layer,) = request.layers
        if any(change.partition("=")[0] in KNOBS for change in self.stack.partition("@")[2].split(",")):
            raise BenchError(f"tune {self.stack}: it finds processes and threads by itself; leave them out")
        self._project = request.project
        self._values = catalog.read().values[BENCH].changed(values.parse_changes(list(request.changes)))
        own = tunable(self._project, self.stack, layer, self._values)
        self.limit = parse_limit(request.capacity, "--limit")
        rows = database.parse(request.project, request.database)
        self._resolve = begin.resolver(begin.make_plan(request), rows, instrument)
        self.skipped: dict[str, str] = {}
        others = self._others(layer)
        self._of_classes = {item.usual.classes: item for item in (own, *others)}
        first = Search(own.knobs, own.usual, Room(), 0.0).next([])
        assert first
        self._new = begin.planned(replace(request, stacks=(own.variant(first),)), instrument)
        self._progress = TuneProgress(printer, self._new.info, self.limit)
        self.session = begin.opened(self._new, request, instrument, self._progress)
        wanted = [item.usual for item in others]
        self.search = Search(own.knobs, own.usual, self._room(), self._new.info.plan.margin, wanted)
        self._cases = {first: self._new.cases[0]}

    def _others(self, layer: str) -> list[Tunable]:
        found = []
        for name in of_other_classes(self.stack):
            case = self._resolve(name, layer)
            if isinstance(case, CannotRun):
                self.skipped[name] = case.reason
            else:
                found.append(tunable(self._project, name, layer, self._values))
        return found

    def of(self, settings: Settings) -> Tunable:
        """The stack that has the worker class of these settings."""
        return self._of_classes[settings.classes]

    def go(self, interrupts: Interrupts) -> list[Tried]:
        """Everything that was tried."""
        with self.session.open(interrupts):
            rounds = self._new.info.plan.rounds

            def measure(settings: Settings, number: int, near: int | None) -> Tried:
                return self._measured(settings, number, near, interrupts)

            done = tuning.search(self.search, rounds, measure)
            self.session.journal.finish(now())
            return done

    def _measured(self, settings: Settings, number: int, near: int | None, interrupts: Interrupts) -> Tried:
        """A round of the settings, and all that is known of them then."""
        case, ledger = self._case(settings), self._new.ledger
        record = case.record
        if near:
            ledger.begin_near(record.case_id, near)
        self._progress.settings = settings
        items = (Measurement(record, 0, number),)
        self.session.measure(Batch(case.served, number, items), interrupts)
        found = tuning.tried(settings, ledger.rounds_of(record.case_id))
        held = f"{rate_words(found.capacity)} in {found.memory}" if found.capacity else found.problem
        self._progress.printer.say(f"{settings.words}: {held}")
        return found

    def _case(self, settings: Settings) -> PlannedCase:
        if settings not in self._cases:
            first = self._new.cases[0]
            name, layer = self.of(settings).variant(settings), first.record.layer
            case = self._resolve(name, layer)
            if isinstance(case, CannotRun):
                raise BenchError(f"{name} with layer {layer} cannot run here: {case.reason}")
            served = replace(case, size=first.served.size)
            record = plan.record(served, first.record.workload)
            self.session.journal.case(record)
            self._cases[settings] = PlannedCase(record, served)
        return self._cases[settings]

    def _room(self) -> Room:
        """The memory of the size, or of the machine."""
        size = self._new.cases[0].served.size
        return Room(size.limits.burstable_bytes if size.is_limited else self.session.journal.environment.memory_bytes)


def answer(tuner: Tuner, done: list[Tried]) -> Answer | None:
    """The simplest settings within the margin of the best; None when none hold the limit."""
    if not any(item.rate for item in done):
        return None
    case = tuner.session.journal.info.cases[0]
    best, tied = tuner.search.best(done), tuple(tuner.search.tied(done))
    return Answer(tuner.of(best.settings).stack, case.layer, tuner.limit.words, best, tied)


def values_text(tuner: Tuner, found: Answer) -> str:
    """The settings as a file for `render --values`."""
    lines = [f"# {line}" for line in paragraph(found.sentence, 100)]
    chosen = [f"{knob} = {getattr(found.chosen.settings, knob)}" for knob in tuner.of(found.chosen.settings).knobs]
    return "\n".join([*lines, f'base = "{PRODUCTION}"', *chosen]) + "\n"
