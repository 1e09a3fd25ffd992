"""The search for the settings of a stack: how many processes, with how many threads each. Pure: no server, no clock.

The search begins with the stack's settings. Processes are doubled as long as throughput rises; if the first doubling
gains nothing, processes are halved as long as throughput holds. Then threads in the same way. Other worker classes are
tried with the best number of processes, and their threads are searched, too. Each candidate is measured in one round,
the best and near ones in more. The result is the simplest candidate within the margin of the best, and its changes of
values.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any

from bench.measure.records.capacity import Capacity, Staircase, capacity
from bench.measure.records.trials import Trial, largest, total
from bench.measure.run.schedules import Schedule
from bench.words import interval_text, plural

PROCESSES, THREADS = "processes", "threads"
KNOBS = (PROCESSES, THREADS)
MAX_SETTING = 64
# Maximum number of settings with more rounds, and their minimum share of the best rate.
MAX_FINALISTS = 3
NEAR = 1.25


@dataclass(frozen=True)
class Settings:
    """Requests handled by the application server at a time: processes, with so many threads each.

    classes  names of the worker class: with one thread, and with several; empty if the server has only one class
    """

    processes: int
    threads: int
    classes: tuple[str, ...] = ()

    @property
    def at_once(self) -> int:
        """Requests at a time, and at most as many database connections."""
        return self.processes * self.threads

    @property
    def simplicity(self) -> tuple[int, int]:
        """Sort key of simplicity: fewest requests at a time, then fewest processes."""
        return self.at_once, self.processes

    def with_(self, knob: str, value: int) -> Settings:
        """The same with another number of processes or threads."""
        changed: dict[str, Any] = {knob: value}
        return replace(self, **changed)

    @property
    def worker_class(self) -> str:
        """The server's name of the worker class."""
        if not self.classes:
            return ""
        if self.threads > 1:
            return self.classes[-1]
        return self.classes[0]

    @property
    def words(self) -> str:
        """`2 processes with 4 threads each (gthread)`."""
        words = f"{plural(self.processes, 'process', 'processes')} with {plural(self.threads, 'thread')}"
        if self.processes > 1:
            words += " each"
        if self.classes:
            words += f" ({self.worker_class})"
        return words

    def record(self) -> dict[str, Any]:
        """For JSON, with the worker class if there are several."""
        known: dict[str, Any] = {PROCESSES: self.processes, THREADS: self.threads}
        if self.classes:
            known["worker_class"] = self.worker_class
        return known


@dataclass(frozen=True, eq=False)
class Candidate:
    """Settings, and the staircases of their rounds."""

    settings: Settings
    rounds: Mapping[int, Staircase]

    @property
    def _trials(self) -> list[Trial]:
        return list(chain.from_iterable(climb.trials.values() for climb in self.rounds.values()))

    @property
    def _highest_trials(self) -> list[Trial]:
        """The trials at the highest rates."""
        return list(filter(None, (climb.highest for climb in self.rounds.values())))

    @cached_property
    def problem(self) -> str:
        """The reason to exclude the settings, such as a process killed for lack of memory; or empty."""
        if killed := sum(trial.condition.oom_kills or 0 for trial in self._highest_trials):
            return f"{plural(killed, 'process', 'processes')} killed for lack of memory"
        failed = [trial.reason or "" for trial in self._trials if trial.status == "failed"]
        if self._highest_trials:
            return ""
        return [*failed, "no rate holds"][0]

    @cached_property
    def memory_bytes(self) -> float | None:
        """Peak of servers and services together at the highest rate, median of the rounds."""
        used = list(filter(None, (total(trial.memory_peak_bytes) for trial in self._highest_trials)))
        if not used:
            return None
        return statistics.median(used)

    @cached_property
    def connections(self) -> int | None:
        """Largest number of database connections; None if not counted."""
        return largest(trial.condition.database_connections_peak for trial in self._trials)

    @cached_property
    def connections_limit(self) -> int | None:
        """The database's limit of connections."""
        return largest(trial.condition.database_connections_limit for trial in self._trials)

    @cached_property
    def capacity(self) -> Capacity | None:
        """The highest rate within the limit."""
        if self.problem:
            return None
        return capacity(list(self.rounds.values()))

    @property
    def rate(self) -> float:
        """The capacity in requests a second, 0 without one."""
        if self.capacity:
            return self.capacity.rate
        return 0.0

    @property
    def memory(self) -> str:
        """The memory in words."""
        if self.memory_bytes is None:
            return "memory not measured"
        return f"{self.memory_bytes / 2**20:,.0f} MiB"

    def cells(self, verdict: str) -> tuple[str, ...]:
        """A row of the table: settings, requests/s, interval, rounds, memory, connections, verdict."""
        if not (capacity := self.capacity):
            return (self.settings.words, *["-"] * 5, verdict)
        held = (f"{capacity.rate:,.0f}", interval_text(capacity.low, capacity.high), f"{capacity.rounds}")
        connections = "not counted"
        if self.connections is not None:
            connections = f"{self.connections}"
        return (self.settings.words, *held, self.memory, connections, verdict)

    def record(self) -> dict[str, Any]:
        """The figures with their units, for JSON."""
        rate = low = high = None
        rounds = 0
        if capacity := self.capacity:
            rate, low, high, rounds = capacity.rate, capacity.low, capacity.high, capacity.rounds
        return {
            "settings": self.settings.record(),
            "requests_per_second": rate,
            "requests_per_second_low": low,
            "requests_per_second_high": high,
            "rounds": rounds,
            "memory_bytes": self.memory_bytes,
            "database_connections": self.connections,
        }


@dataclass(frozen=True)
class TuningSpace:
    """A stack that can be tuned.

    knobs  the KNOBS used by the stack
    usual  the stack's own settings
    fewer  knobs that may go below the usual value; not threads, because slow clients need them and trials have none
    """

    stack: str
    knobs: tuple[str, ...]
    usual: Settings
    fewer: tuple[str, ...] = KNOBS

    def variant(self, settings: Settings) -> str:
        """The name of the stack with these settings."""
        name, _, values = self.stack.partition("@")
        changed = [f"{knob}={getattr(settings, knob)}" for knob in self.knobs]
        return f"{name}@{','.join(filter(None, [values, *changed]))}"


# Makes the staircase of settings in a round, after those of earlier rounds, near a probable rate; 0 if unknown.
StaircaseMaker = Callable[[Settings, int, Mapping[int, Staircase], int], Schedule[Staircase]]


@dataclass
class SettingsSearch:
    """Choice of the next settings.

    margin        minimum relative gain of a rate
    memory_bytes  memory limit, None if unknown; the limit of connections is learned from the trials
    others        stacks of other worker classes
    candidates    candidates so far
    too_large     settings that do not fit, with the reason
    """

    own: TuningSpace
    margin: float
    memory_bytes: int | None = None
    others: Sequence[TuningSpace] = ()
    candidates: dict[Settings, Candidate] = field(default_factory=dict)
    too_large: dict[Settings, str] = field(default_factory=dict)

    def schedule(self, rounds: int, climb: StaircaseMaker) -> Schedule[None]:
        """Try settings until the end of the search, then the finalists in more rounds."""
        yield from self._first_round(climb)
        for number in range(2, rounds + 1):
            # Every other round the other way round, so that none is always measured first.
            finalists = self._finalists()
            if number % 2 == 0:
                finalists.reverse()
            for settings in finalists:
                yield from self._try(settings, number, climb)

    def _first_round(self, climb: StaircaseMaker) -> Schedule[None]:
        at = self.own.usual
        for knob in self.own.knobs:
            at = yield from self._ladder(at, knob, climb)
        for other in self.others:
            start = other.usual.with_(PROCESSES, at.processes)
            if self._fits(start):
                yield from self._ladder(start, THREADS, climb)

    def _ladder(self, start: Settings, knob: str, climb: StaircaseMaker) -> Schedule[Settings]:
        """Double the number as long as throughput rises, or halve the first as long as throughput holds; returns the
        best.

        If the first holds nothing, as without enough memory, fewer may.
        """
        tried, more = [start], 1 + self.margin
        if start not in self.candidates:
            yield from self._try(start, 1, climb)
        top = low = start
        while getattr(top, knob) < MAX_SETTING and self._rate(top) > more * self._highest(tried[:-1]):
            larger = top.with_(knob, 2 * getattr(top, knob))
            if not self._fits(larger):
                break
            top = larger
            tried.append(top)
            yield from self._try(top, 1, climb)
        while knob in self.own.fewer and getattr(low, knob) > 1 and self._rate(low) * more >= self._highest(tried):
            low = low.with_(knob, getattr(low, knob) // 2)
            tried.append(low)
            yield from self._try(low, 1, climb)
        return self.best([self.candidates[settings] for settings in tried]).settings

    def _try(self, settings: Settings, number: int, climb: StaircaseMaker) -> Schedule[None]:
        """Make a staircase with these settings in a round; a first round begins near the highest rate so far."""
        near = 0
        if number == 1:
            near = round(self._highest(self.candidates))
        before: Mapping[int, Staircase] = {}
        if settings in self.candidates:
            before = self.candidates[settings].rounds
        staircase = yield from climb(settings, number, before, near)
        self.candidates[settings] = Candidate(settings, {**before, number: staircase})

    def _rate(self, settings: Settings) -> float:
        return self.candidates[settings].rate

    def _highest(self, settings: Iterable[Settings]) -> float:
        """The highest rate of these; 0 without any."""
        return max(map(self._rate, settings), default=0.0)

    @property
    def done(self) -> list[Candidate]:
        """Tried candidates, in order."""
        return list(self.candidates.values())

    def of(self, settings: Settings) -> TuningSpace:
        """The stack with the worker class of these settings."""
        return next(item for item in (self.own, *self.others) if item.usual.classes == settings.classes)

    def best(self, done: Sequence[Candidate]) -> Candidate:
        """The simplest candidate that none surely exceeds by more than the margin."""
        return min((item for item in done if self._as_good(item, done)), key=lambda it: it.settings.simplicity)

    def _as_good(self, item: Candidate, done: Sequence[Candidate]) -> bool:
        """True if no candidate holds more by the margin in each round: a single round proves nothing."""
        highest = max(done, key=lambda it: it.rate)
        if item.rate * (1 + self.margin) >= highest.rate:
            return True
        own, other = item.capacity, highest.capacity
        if not own or not other or min(own.rounds, other.rounds) < 2 or item.rate * NEAR < highest.rate:
            return False
        return own.high is None or own.high >= other.low

    def _finalists(self) -> list[Settings]:
        """Settings near the best for more rounds, the simplest first."""
        highest = max(item.rate for item in self.done)
        near = [item for item in self.done if item.rate and item.rate * NEAR >= highest]
        ranked = sorted(near, key=lambda item: (item is not self.best(near), -item.rate))[:MAX_FINALISTS]
        return sorted((item.settings for item in ranked), key=lambda settings: settings.simplicity)

    @property
    def chosen(self) -> Candidate | None:
        """The settings to take: the simplest within the margin of the highest rate. None if none hold the limit."""
        if not any(item.rate for item in self.done):
            return None
        return self.best(self.done)

    @property
    def tied(self) -> list[Candidate]:
        """Candidates as good as the chosen one."""
        done = self.done
        return [item for item in done if item is not self.chosen and self._as_good(item, done)]

    def sentence(self, layer: str, limit: str) -> str:
        """A sentence on the recommended settings, with rate, memory and connections, and the changes."""
        chosen, before = self.chosen, self.candidates[self.own.usual]
        assert chosen and chosen.capacity
        settings, peak = chosen.settings, chosen.capacity
        at_most = f"at most {plural(settings.at_once, 'database connection')}"
        counted = at_most
        if chosen.connections is not None:
            counted = plural(chosen.connections, "database connection")
        text = (
            f"{self.of(settings).stack} with layer {layer}: take {settings.words}; they hold {peak.rate:,.0f} "
            f"requests/s ({interval_text(peak.low, peak.high)} in {plural(peak.rounds, 'round')}) with {limit}, in "
            f"{chosen.memory} and with {counted}."
        )
        if self.tied:
            text += f" No difference to {' and '.join(item.settings.words for item in self.tied)}: take the simpler."
        if before is chosen:
            return f"{text} That is what the stack has."
        times = "the limit, as that did not"
        if before.rate:
            times = f"{chosen.rate / before.rate:.2f} times as much"
        memory = f"{chosen.memory} instead of {before.memory}"
        return f"{text} The stack has {before.settings.words}: the change holds {times}, in {memory}."

    def verdict(self, item: Candidate) -> str:
        """A verdict on some settings compared to the others."""
        if not item.rate:
            return item.problem
        best = self.best(self.done)
        if item is best:
            return "take these"
        if item in self.tied:
            return "no difference"
        return f"holds {item.rate / best.rate:.2f} times as much"

    def _fits(self, settings: Settings) -> bool:
        """True if the settings can be tried; otherwise the reason is noted."""
        limit = largest(item.connections_limit for item in self.done)
        needed, memory = memory_needed(settings, self.done), self.memory_bytes
        # One connection is the instrument's, for counting.
        if limit is not None and settings.at_once > limit - 1:
            why = f"{settings.at_once} threads may each hold a database connection, and {limit - 1} are free"
        elif memory is not None and needed is not None and needed > memory:
            why = f"needs about {needed / 2**20:,.0f} MiB of {memory / 2**20:,.0f} MiB"
        else:
            return True
        self.too_large[settings] = why
        return False


def memory_needed(settings: Settings, done: Sequence[Candidate]) -> float | None:
    """Upper bound of the settings' memory, in proportion to the largest known number of processes; None if unknown.

    Processes share memory, so the first one costs the most.
    """
    known: dict[int, float] = {}
    for item in done:
        if item.settings.classes == settings.classes and item.memory_bytes:
            known[item.settings.processes] = item.memory_bytes
    if not known:
        return None
    most = max(known)
    return known.get(settings.processes, known[most] / most * settings.processes)
