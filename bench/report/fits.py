"""Which deployment to pick for so much memory, and for readers who are signed in. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.figures.words import joined
from bench.report.choice import Choice, choices, choose, how_sure
from bench.report.findings import deployment_name, quoted
from bench.report.model import Report, rate_of
from bench.report.numbers import MIB, NOT_MEASURED, number
from bench.report.overall import Deployment
from bench.results.records import UNLIMITED

BUDGETS_MIB = (128, 512, 2048)
SIGNED_IN = "Readers who are signed in"


@dataclass(frozen=True)
class Fit:
    """The deployment for a need, with its figures in words; `deployment` is a dash's reason where there is none.

    need  such as `512 MiB`, or `Readers who are signed in`
    """

    need: str
    deployment: str
    rates: str = ""
    memory: str = ""
    sure: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing fits."""
        return not self.rates


def fits(report: Report) -> list[Fit]:
    """A row for each budget of memory and each kind of reader, of the first question of the run that has an answer.

    Sizes that were measured follow: their figures come from within the limit.
    """
    found = choices(report)
    main = next((choice for choice in found if choice.proven), None)
    if main is None:
        return []
    is_limited = main.question.panels[0].setting.is_limited
    rows = [_fit(_place(main) if is_limited else "Anonymous readers, any memory", main), *_budgets(report, main)]
    signed_in = choose(report, main.question, lambda key: not main.question.caches_pages(key))
    proven = signed_in if signed_in and signed_in.proven else None
    rows.append(_fit(SIGNED_IN, proven) if proven else Fit(SIGNED_IN, "no figures to compare"))
    limited = [choice for choice in found if choice is not main and choice.proven]
    return rows + [_fit(_place(choice), choice) for choice in limited]


def note() -> str:
    """What the rows rest on."""
    return (
        "A budget is compared with the measured peak memory of servers and services under this load, without the "
        "system. It was not set as a limit; rows with a size were measured within it. All figures are those of "
        "anonymous readers. Cached pages are not for readers who are signed in: their row compares deployments whose "
        "application makes each page, with or without parts from a cache."
    )


def _budgets(report: Report, main: Choice) -> list[Fit]:
    """What fits; budgets with the same answer share a row."""
    question = main.question
    needs = {key: question.memory(key) for key in question.deployments}
    if not any(needs.values()):
        return []
    found: dict[Fit, list[int]] = {}
    for budget in BUDGETS_MIB:
        choice = choose(report, question, _within(needs, budget))
        nothing = Fit("", f"nothing measured fits: the least is {_least(needs)} MiB")
        found.setdefault(_fit("", choice) if choice and choice.proven else nothing, []).append(budget)
    place = f", {main.place}" if question.panels[0].setting.is_limited else ""
    return [
        Fit(f"{joined([f'{each:,}' for each in budgets])} MiB{place}", fit.deployment, fit.rates, fit.memory, fit.sure)
        for fit, budgets in found.items()
    ]


def _within(needs: dict[Deployment, float | None], budget: int) -> Callable[[Deployment], bool]:
    return lambda key: (needs.get(key) or float("inf")) <= budget * MIB


def _least(needs: dict[Deployment, float | None]) -> str:
    return number(min(need for need in needs.values() if need is not None) / MIB)


def _fit(need: str, choice: Choice) -> Fit:
    several = len(choice.rows) > 1
    rates = [number(rate_of(row)) + (f" on {quoted(row.setting.workload)}" if several else "") for row in choice.rows]
    memory = choice.question.memory(choice.chosen)
    return Fit(
        need,
        deployment_name(*choice.chosen),
        joined(rates),
        number(memory / MIB) if memory is not None else NOT_MEASURED,
        how_sure(choice),
    )


def _place(choice: Choice) -> str:
    place = choice.place or UNLIMITED
    return f"{place[:1].upper()}{place[1:]}"
