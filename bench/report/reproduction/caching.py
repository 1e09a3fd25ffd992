"""The published caching benchmark beside what a run measured. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.figures.stats import Spread
from bench.report.model import BASELINE, CaseRow, Panel, Report
from bench.results.reproduction import benchmarks


@dataclass(frozen=True)
class PublishedLayer:
    """One layer of the published caching benchmark, and the figures of this run for the same layer."""

    title: str
    layer: str
    requests_per_second: float
    latency_mean_ms: float
    times_none: float
    rate: Spread | None  # requests/s in this run
    ratio: Spread | None  # the same divided by those of `none` on the same stack
    note: str  # why this run has no figure; empty where it has one


@dataclass(frozen=True)
class PublishedCaching:
    """The published caching benchmark beside this run."""

    title: str
    source: str
    year: int
    question: str
    load: str
    machine: str
    workload: str
    stack: str | None  # the stack of this run to compare with
    same_stack: bool  # whether that is the published one
    panel: Panel | None
    layers: tuple[PublishedLayer, ...]

    @property
    def comparable(self) -> list[PublishedLayer]:
        """Layers with both a published and a measured ratio, without the baseline."""
        return [row for row in self.layers if row.ratio and row.layer != BASELINE]


def beside(report: Report, published: Mapping[str, Any] | None = None) -> PublishedCaching:
    """The published layers, with this run's ratios to `none` where the layer was measured."""
    data = (published or benchmarks())["caching"]
    panel = next((item for item in report.main_panels if item.setting.workload == data["workload"]), None)
    stack = _stack(panel, data["here"]["stack"])
    return PublishedCaching(
        **{key: data[key] for key in ("title", "source", "year", "question", "load", "machine", "workload")},
        stack=stack,
        same_stack=stack == data["here"]["stack"],
        panel=panel,
        layers=tuple(_layer(row, panel, stack) for row in data["rows"] if not row.get("added")),
    )


def _stack(panel: Panel | None, preferred: str) -> str | None:
    """The published stack when a layer of it was measured, else the stack with most measured layers."""
    measured = {stack: len([row for row in rows if row.ranked]) for stack, rows in (panel.groups if panel else ())}
    if measured.get(preferred, 0) > 1:
        return preferred
    return max(measured, key=lambda stack: measured[stack], default=None)


def _layer(row: Mapping[str, Any], panel: Panel | None, stack: str | None) -> PublishedLayer:
    here = panel.row(stack, row["layer"]) if panel and stack else None
    figures = here if here and here.ranked else None
    return PublishedLayer(
        **{key: row[key] for key in ("title", "layer", "requests_per_second", "latency_mean_ms", "times_none")},
        rate=figures.rate if figures else None,
        ratio=figures.times_none if figures else None,
        note=_note(here),
    )


def _note(here: CaseRow | None) -> str:
    if here is None:
        return "not measured here"
    if here.ok and here.wrong:
        return "not measured here: it gave wrong answers"
    return "" if here.ok else f"not measured here: {here.outcome}"
