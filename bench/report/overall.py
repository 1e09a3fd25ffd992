"""Which deployment serves the most over all workloads of a run. Pure.

A question is asked for each size and database of a run: which deployment? Its figure is the geometric mean over the
workloads, each counted alike. Only deployments with trusted figures on every workload can be the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from bench.figures.noise import Noise, noise_of
from bench.figures.overall import Overall
from bench.figures.ratios import Ratio, Standings, compared, logarithms, standings, tail
from bench.report.model import OPEN, CaseRow, Panel, Report
from bench.results.records import NO_LAYER

Deployment = tuple[str, str]  # stack, layer
# Needs of memory that differ by less are the same: so much do two runs of one deployment differ.
SAME_MEMORY = 1.05


@dataclass(frozen=True)
class Question:
    """The panels of one size, database and load, one a workload, and what they say together."""

    panels: tuple[Panel, ...]

    def row(self, panel: Panel, key: Deployment) -> CaseRow | None:
        """The ranked row of a deployment."""
        return next((row for row in panel.ranked if (row.stack, row.layer) == key and row in panel.noise.cases), None)

    def rows(self, key: Deployment) -> list[CaseRow]:
        """Its ranked rows, one a workload."""
        return [row for panel in self.panels if (row := self.row(panel, key)) is not None]

    @cached_property
    def deployments(self) -> list[Deployment]:
        """Those that are ranked on every workload, fastest first."""
        keys = dict.fromkeys((row.stack, row.layer) for panel in self.panels for row in panel.ranked)
        shared = [key for key in keys if len(self.rows(key)) == len(self.panels)]
        return sorted(shared, key=lambda key: -self.noise.cases[key].mean)

    @cached_property
    def noise(self) -> Overall[Deployment]:
        """The noise of requests/s over the workloads."""
        return Overall([_by_deployment(panel) for panel in self.panels])

    @property
    def looks(self) -> int:
        """How often a run until decided may have looked at the figures."""
        return self.panels[0].looks

    @cached_property
    def standings(self) -> Standings[Deployment] | None:
        """The deployments against the best of them; None when none is ranked on every workload."""
        return self.standings_of(lambda key: True)

    def standings_of(self, wanted: Callable[[Deployment], bool]) -> Standings[Deployment] | None:
        """Some of the deployments against the best of these."""
        names = [key for key in self.deployments if wanted(key)]
        if not names:
            return None
        # Dropped on every workload: a race over all of them found that it cannot be the best, though it may be of some.
        whole = names == self.deployments
        dropped = [key for key in names if whole and all(row.dropped for row in self.rows(key))]
        return standings(self.noise, names, self.panels[0].margin, tail(len(names), self.looks), dropped)

    def gain(self, key: Deployment) -> Ratio | None:
        """How many times the requests/s of layer `none` on the same stack it serves; None without that."""
        bare = (key[0], NO_LAYER)
        if key == bare or bare not in self.deployments:
            return None
        return compared(self.noise, bare, key, tail(2, self.looks), self.panels[0].margin)

    def programs(self, key: Deployment) -> int:
        """How many programs serve it in production: servers, services, and a proxy where none of these speaks TLS.

        0 when that was not measured.
        """
        measured = max((len(row.servers) for row in self.rows(key)), default=0)
        return measured and measured + self.needs_proxy(key)

    def needs_proxy(self, key: Deployment) -> bool:
        """Whether production needs a proxy before it that ends TLS."""
        return any(row.case.needs_proxy for row in self.rows(key) if row.case)

    def caches_pages(self, key: Deployment) -> bool:
        """Whether whole pages come from a cache, for anonymous readers; every layer does where the run does not say."""
        known = {row.case.caches for row in self.rows(key) if row.case}
        return key[1] != NO_LAYER and not known <= {"nothing", "parts"}

    def memory(self, key: Deployment) -> float | None:
        """Its largest peak memory over the workloads in bytes; None when one of them did not measure it."""
        totals = [row.memory_total for row in self.rows(key)]
        known = [total.median for total in totals if total]
        return max(known) if known and len(known) == len(totals) else None

    def simplest(self, keys: Iterable[Deployment]) -> Deployment:
        """The one with the fewest programs, then with clearly the least memory, then the fastest."""
        found = list(keys)
        fewest = min(self.programs(key) or math.inf for key in found)
        found = [key for key in found if (self.programs(key) or math.inf) == fewest]
        needs = {key: math.inf if (memory := self.memory(key)) is None else memory for key in found}
        found = [key for key in found if needs[key] <= min(needs.values()) * SAME_MEMORY]
        return min(found, key=self.deployments.index)


def is_asked_rate(panel: Panel) -> bool:
    """Whether requests/s were asked for and not found out: then all that keep up have the same."""
    return panel.setting.mode == OPEN and not panel.setting.limit


def questions(report: Report) -> list[Question]:
    """The questions that the run answers; those without any figure are left out, and those of a rate that was asked."""
    found: dict[tuple[str, str, str], list[Panel]] = {}
    for panel in report.main_panels:
        if panel.standings and not is_asked_rate(panel):
            setting = panel.setting
            found.setdefault((setting.size, setting.database, setting.mode), []).append(panel)
    return [Question(tuple(panels)) for panels in found.values()]


def _by_deployment(panel: Panel) -> Noise[Deployment]:
    rates = {(row.stack, row.layer): logarithms(row.by_round("requests_per_second")) for row in panel.ranked}
    return noise_of({key: rounds for key, rounds in rates.items() if rounds})
