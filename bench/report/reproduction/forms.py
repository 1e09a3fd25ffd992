"""The report of a reproduction as HTML, Markdown and CSV: published beside measured figures, and conclusions."""

from __future__ import annotations

from collections.abc import Iterable

from bench.figures.stats import Estimate
from bench.report import csv, html, markdown
from bench.report.plots import Plots
from bench.report.reproduction import texts
from bench.report.reproduction.side_by_side import PublishedFigure, Reproduced
from bench.report.reproduction.texts import ReproductionTexts


def as_html(found: Reproduced) -> str:
    """The whole document."""
    return html.document("reproduction.html.j2", _context(found))


def as_markdown(found: Reproduced) -> str:
    """The whole document as Markdown."""
    return markdown.document("reproduction.md.j2", **_context(found))


def _context(found: Reproduced) -> dict[str, object]:
    first = found.reports[0]
    sentences = ReproductionTexts(found)
    return {
        "title": sentences.heading,
        "found": found,
        "plots": Plots(tuple(found.reports)),
        "texts": sentences,
        "cells": texts,
        "report": first,
        "plan": first.run.info.plan,
    }


CSV_HEAD = (
    "row",
    "stack",
    "layer",
    "size",
    "in_publication",
    "column",
    "metric",
    "published",
    "published_ratio",
    "measured",
    "measured_low",
    "measured_high",
    "rounds",
    "ratio",
    "ratio_low",
    "ratio_high",
    "why_not_measured",
)


def as_csv(found: Reproduced) -> str:
    """One line a row and column, in the units of the metric; empty where nothing was measured."""
    rows = [
        (row.title, row.stack, row.layer, row.size, not row.added, column.title, column.metric, *_csv_figures(figure))
        for row in found.rows
        for column, figure in zip(found.columns, row.figures, strict=True)
    ]
    return csv.table([CSV_HEAD, *rows])


def _csv_figures(figure: PublishedFigure) -> Iterable[object]:
    yield from (figure.published, figure.published_ratio)
    if isinstance(figure.measured, Estimate):
        yield from (figure.measured.median, figure.measured.low, figure.measured.high, figure.measured.count)
    else:
        yield from (figure.measured, None, None, None)
    yield from (figure.ratio.median, figure.ratio.low, figure.ratio.high) if figure.ratio else (None, None, None)
    yield figure.why or None


FORMS = {"html": as_html, "md": as_markdown, "csv": as_csv}
