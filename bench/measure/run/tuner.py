"""Find the settings of a stack by measuring: a run of capacities whose cases follow from earlier ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bench.columns import paragraph
from bench.errors import BenchError, GlobalFault
from bench.measure.records.capacity import Staircase
from bench.measure.records.records import RunInfo
from bench.measure.records.trials import Trial
from bench.measure.run import machine_facts, plan, prepare, schedules
from bench.measure.run.local import LocalTestBed
from bench.measure.run.outlook import Outlook
from bench.measure.run.plan import Deployment, MeasuredCase, Measurement, Request
from bench.measure.run.prepare import Prepared
from bench.measure.run.progress import RunProgress, rate_words
from bench.measure.run.schedules import Schedule
from bench.measure.run.tuning import KNOBS, PROCESSES, Candidate, Settings, SettingsSearch, TuningSpace
from bench.printer import Printer
from bench.serve.catalog import catalog
from bench.serve.catalog.values import BENCH, PRODUCTION
from bench.serve.deployment import render
from bench.serve.deployment.case import CannotRun, for_files
from bench.serve.project.opened import UnderTest


class TuneProgress(RunProgress):
    """Names trials by their settings; how many are left nobody knows."""

    def __init__(self, printer: Printer, info: RunInfo, outlook: Outlook, tuner: Tuner):
        super().__init__(printer, info, outlook)
        self._tuner = tuner

    def finish(self, record: Trial, again: bool) -> None:
        """Print a step, and the result for settings at the end of their staircase."""
        super().finish(record, again)
        while self._tuner.ends:
            self.printer.say(self._tuner.ends.popleft())

    def where(self, trial: Trial) -> str:
        """The settings and the round."""
        return f"{self._tuner.settings_of[trial.case_id].words}, round {trial.round}"

    def left(self, trial: Trial) -> str:
        """Nothing: the search ends at the knee."""
        return ""


def tunable(project: UnderTest, stack: str, layer: str, changes: Mapping[str, Any]) -> TuningSpace:
    """The stack with its settings, and these changes of values. Raises BenchError if the stack has none, or the layer
    does not fit."""
    chosen = catalog.read().values[BENCH].changed(changes)
    case = for_files(project, stack, layer, chosen)
    used = render.names_used(case)
    knobs = tuple(knob for knob in KNOBS if knob in used)
    if not knobs:
        raise BenchError(f"tune {stack}: it has neither processes nor threads to set; try another stack")
    processes, threads = (int(case.settings[knob]) for knob in KNOBS)
    space = TuningSpace(stack, knobs, Settings(processes, threads, case.servers[0].worker_class))
    if len(case.servers) > 1:
        return space
    return replace(space, fewer=(PROCESSES,))


def of_other_classes(stack: str) -> list[str]:
    """The usual stacks of the same servers with another worker class."""
    known = catalog.read()
    mine = known.stack(stack)
    if not (own := mine.servers[0].worker_class):
        return []
    chain = [server.name for server in mine.servers]
    names = []
    for name in known.usual_stacks:
        servers = known.stacks[name].servers
        if [server.name for server in servers] == chain and servers[0].worker_class not in ((), own):
            names.append(name)
    return names


class Tuner:
    """The search on real deployments.

    stack        without settings
    layer        of all
    search       chooses the next settings
    limit        of the latency
    skipped      unusable stacks of other worker classes, with the reason
    settings_of  case -> its settings
    ends         results for settings, in words, at the end of each staircase, until they are printed
    """

    def __init__(self, prepared: Prepared, project: UnderTest, bed: type[LocalTestBed] = LocalTestBed):
        plan = prepared.info.plan
        self._first = prepared.cases[0]
        self.stack, self.layer, self._rounds = plan.tunes, plan.layers[0], plan.rounds
        self.workload = self._first.record.workload
        # `tune` searches only within a limit.
        assert plan.capacity is not None
        self.limit = plan.capacity
        self._resolve = bed.resolver(project, plan, self._first.served.database)
        self.skipped: dict[str, str] = {}
        self.settings_of: dict[str, Settings] = {}
        self.ends: deque[str] = deque()
        self._cases: dict[Settings, MeasuredCase] = {}
        own = tunable(project, self.stack, self.layer, plan.changes)
        others = []
        for name in of_other_classes(self.stack):
            case = self._resolve(name, self.layer)
            if isinstance(case, CannotRun):
                self.skipped[name] = case.reason
            else:
                others.append(tunable(project, name, self.layer, plan.changes))
        self.search = SettingsSearch(own, plan.margin, self._memory_bytes(prepared), others)

    def _memory_bytes(self, prepared: Prepared) -> int | None:
        """Room for memory: the size's, else the machine's."""
        size = self._first.served.size
        if size.is_limited:
            return size.limits.burstable_bytes
        if prepared.before:
            return prepared.before.environment.memory_bytes
        return machine_facts.memory_bytes()

    def schedule(self, outlook: Outlook) -> Schedule[None]:
        """The search; the outlook knows each case before its first trial."""

        def climb(settings: Settings, number: int, before: Mapping[int, Staircase], near: int) -> Schedule[Staircase]:
            case = self._case(settings)
            if case.record not in outlook.tried_cases:
                outlook.tried_cases.append(case.record)
            item = Measurement(case.record, 0, number, Deployment(case.served, number))
            ends = [climbed.low for climbed in before.values() if climbed.low is not None]
            staircase = yield from schedules.climb(item, self.limit, outlook, ends, near)
            candidate = Candidate(settings, {**before, number: staircase})
            held = candidate.problem
            if candidate.capacity:
                held = f"{rate_words(candidate.capacity)} in {candidate.memory}"
            self.ends.append(f"{settings.words}: {held}")
            return staircase

        yield from self.search.schedule(self._rounds, climb)

    def _case(self, settings: Settings) -> MeasuredCase:
        if settings not in self._cases:
            name = self.search.of(settings).variant(settings)
            case = self._resolve(name, self.layer)
            if isinstance(case, CannotRun):
                raise GlobalFault(f"{name} with layer {self.layer} cannot run here: {case.reason}")
            served = replace(case, size=self._first.served.size)
            record = plan.record(served, self.workload)
            self._cases[settings] = MeasuredCase(record, served)
            self.settings_of[record.case_id] = settings
        return self._cases[settings]

    @property
    def sentence(self) -> str:
        """The result in a sentence."""
        if not self.search.chosen:
            return f"No settings kept {self.limit.words}."
        return self.search.sentence(self.layer, self.limit.words)

    @property
    def values(self) -> str:
        """The settings to take as a file for `render --values`."""
        chosen = self.search.chosen
        assert chosen
        lines = [f"# {line}" for line in paragraph(self.sentence, 100)]
        lines.append(f'base = "{PRODUCTION}"')
        for knob in self.search.of(chosen.settings).knobs:
            lines.append(f"{knob} = {getattr(chosen.settings, knob)}")
        return "\n".join([*lines, ""])


def new_search(request: Request, bed: type[LocalTestBed] = LocalTestBed) -> Prepared:
    """A new search for the settings of the request's stack. Raises BenchError."""
    (stack,), (layer,) = request.stacks, request.layers
    if any(change.partition("=")[0] in KNOBS for change in stack.partition("@")[2].split(",")):
        raise BenchError(f"tune {stack}: it finds processes and threads by itself; leave them out")
    own = tunable(request.project, stack, layer, request.changes)
    return prepare.new_run(replace(request, tunes=stack, stacks=(own.variant(own.usual),)), bed)
