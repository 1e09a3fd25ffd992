"""The deployment to choose for a question, and why it is the one. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.figures.ratios import Standings
from bench.figures.words import joined, plural
from bench.report.findings import quoted
from bench.report.model import CaseRow, Report
from bench.report.numbers import MIB, number
from bench.report.overall import SAME_MEMORY, Deployment, Question, questions


@dataclass(frozen=True)
class Choice:
    """The answer to a question: the deployment to pick, and those that tie with it.

    chosen  the leader, or the simplest of those that tie
    """

    report: Report
    question: Question
    standings: Standings[Deployment]
    chosen: Deployment

    @property
    def tied(self) -> list[Deployment]:
        """The others that may be the best."""
        both = (self.standings.leader, *self.standings.tied)
        return [key for key in both if key != self.chosen]

    @property
    def rows(self) -> list[CaseRow]:
        """Its ranked rows, one a workload."""
        return self.question.rows(self.chosen)

    @property
    def is_only(self) -> bool:
        """Whether there is nothing to compare it with."""
        return len(self.standings.ratios) == 1

    @property
    def proven(self) -> bool:
        """Whether the rounds show how large chance is; one round does not."""
        return self.standings.proven or (self.is_only and min(len(row.ok) for row in self.rows) > 1)

    @property
    def most_rounds(self) -> int:
        """The most rounds that any deployment of the question has."""
        return max(len(row.ok) for panel in self.question.panels for row in panel.ranked)

    @property
    def place(self) -> str:
        """`size bronze, postgresql`: size and database of the question, where the run has several or one is limited."""
        here, all_panels = self.question.panels[0].setting, self.report.main_panels
        parts = []
        if here.is_limited or len({panel.setting.size for panel in all_panels}) > 1:
            parts.append(f"size {quoted(here.size)}")
        if len({panel.setting.database for panel in all_panels}) > 1:
            parts.append(quoted(here.database))
        return ", ".join(parts)

    @property
    def where(self) -> str:
        """On which workloads, in which size and on which database."""
        names = [quoted(panel.setting.workload) for panel in self.question.panels]
        place = f", {self.place}" if self.place else ""
        if len(names) == 1:
            return f"on {names[0]}{place}"
        return f"over {'both' if len(names) == 2 else f'all {len(names)}'} workloads, {joined(names)}{place}"


def choose(
    report: Report, question: Question, wanted: Callable[[Deployment], bool] = lambda key: True
) -> Choice | None:
    """The best of the wanted deployments: the leader, or the simplest of those that tie.

    None when none of them has figures on every workload.
    """
    found = question.standings_of(wanted)
    if found is None:
        return None
    tied = found.proven and found.tied
    return Choice(report, question, found, question.simplest((found.leader, *found.tied)) if tied else found.leader)


def choices(report: Report) -> list[Choice]:
    """The choice of each question of a run: one for each size and database."""
    return [choice for question in questions(report) if (choice := choose(report, question))]


def why_simplest(choice: Choice) -> str:
    """Why the chosen deployment is simpler than those that tie with it."""
    question, keys = choice.question, [choice.chosen, *choice.tied]
    own, *others = (question.programs(key) for key in keys)
    if own and all(others) and own < min(others):
        return f"it is simpler: {plural(own, 'program')}, not {_counts(others)}{_proxies(question, keys)}"
    memory, *more = (question.memory(key) for key in keys)
    if memory is not None and all(need is not None for need in more):
        needs = [need / MIB for need in more if need is not None]
        same = "with as few programs " if own and min(others) == own else ""
        if min(needs) * MIB <= memory * SAME_MEMORY:
            return f"{same}no other needs clearly less memory than its {number(memory / MIB)} MiB"
        return f"{same}it needs the least memory: {number(memory / MIB)} MiB, not {between(needs)}"
    return "nothing measured says which is simpler"


def how_sure(choice: Choice) -> str:
    """Whether the choice leads or ties, in a few words; of one that is proven."""
    if choice.is_only:
        return "the only one"
    if choice.tied:
        return f"ties with {plural(len(choice.tied), 'other')}, the simplest of them"
    ratio = min(choice.standings.ratios[key].ratio for key in choice.standings.slower)
    return f"{number(ratio)} times the next"


def _proxies(question: Question, keys: list[Deployment]) -> str:
    """That a program is counted which was not measured, where one is."""
    return " (a proxy that ends TLS counted)" if any(map(question.needs_proxy, keys)) else ""


def _counts(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"


def between(values: list[float]) -> str:
    """`1.2`, or `1.2 to 3.4`."""
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"
