"""The published caching benchmark beside what a run measured. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.figures.stats import Estimate
from bench.report.model import CaseRow, Panel, Report
from bench.results.records import NO_LAYER
from bench.results.reproduction import benchmarks


@dataclass(frozen=True)
class PublishedLayer:
    """One layer of the published caching benchmark, and the row of this run with the same layer."""

    published: Mapping[str, Any]  # its row in published.toml
    here: CaseRow | None

    @property
    def layer(self) -> str:
        """Its name in this project."""
        return str(self.published["layer"])

    @property
    def rate(self) -> Estimate | None:
        """Requests/s in this run."""
        return self.here.rate if self.here and self.here.ranked else None

    @property
    def ratio(self) -> Estimate | None:
        """The same divided by those of `none` on the same stack."""
        return self.here.times_none if self.here and self.here.ranked else None

    @property
    def note(self) -> str:
        """Why this run has no figure; empty where it has one."""
        if self.here is None:
            return "not measured here"
        if self.here.ok and self.here.wrong:
            return "not measured here: it gave wrong answers"
        return "" if self.here.ok else f"not measured here: {self.here.outcome}"


@dataclass(frozen=True)
class PublishedCaching:
    """The published caching benchmark beside this run."""

    data: Mapping[str, Any]  # the benchmark in published.toml
    stack: str | None  # the stack of this run to compare with
    panel: Panel | None
    layers: tuple[PublishedLayer, ...]

    @property
    def same_stack(self) -> bool:
        """Whether the stack is the published one."""
        return bool(self.stack == self.data["here"]["stack"])

    @property
    def comparable(self) -> list[PublishedLayer]:
        """Layers with both a published and a measured ratio, without the baseline."""
        return [row for row in self.layers if row.ratio and row.layer != NO_LAYER]


def beside(report: Report) -> PublishedCaching:
    """The published layers, with this run's ratios to `none` where the layer was measured."""
    data = benchmarks()["caching"]
    panel = next((item for item in report.main_panels if item.setting.workload == data["workload"]), None)
    stack = _stack(panel, data["here"]["stack"])
    layers = tuple(
        PublishedLayer(row, panel.row(stack, row["layer"]) if panel and stack else None)
        for row in data["rows"]
        if not row.get("added")
    )
    return PublishedCaching(data, stack, panel, layers)


def _stack(panel: Panel | None, preferred: str) -> str | None:
    """The published stack when a layer of it was measured, else the stack with most measured layers."""
    measured = {stack: len([row for row in rows if row.ranked]) for stack, rows in (panel.groups if panel else ())}
    if measured.get(preferred, 0) > 1:
        return preferred
    return max(measured, key=lambda stack: measured[stack], default=None)
