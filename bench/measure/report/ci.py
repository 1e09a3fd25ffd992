"""A run for continuous integration: Markdown for a job's summary, and JSON for trackers of benchmarks. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain

from bench.measure.records.folder import Run
from bench.measure.report.comparison import ratio_interval, tables
from bench.measure.report.document import Document
from bench.measure.report.ref_comparison import RefComparison, compare_refs, figure
from bench.words import number

GITHUB, ACTION, BENCHER = "github", "github-action-benchmark", "bencher"
FORMATS = (GITHUB, ACTION, BENCHER)


def written(form: str, runs: Sequence[Run], document: Document) -> str:
    """The text of a format for these runs and their document."""
    if form == GITHUB:
        return markdown(runs, document)
    figures = {ACTION: action, BENCHER: bencher}[form](runs)
    return json.dumps(figures, indent=2) + "\n"


def markdown(runs: Sequence[Run], document: Document) -> str:
    """The verdict, and a table of each run's commits, otherwise of its cases."""
    lines = ["## benchapp", ""]
    if document.warning:
        lines += [document.warning, ""]
    lines += [*document.answer, ""]
    for run in runs:
        if compared := compare_refs(run):
            lines += _table_of_refs(compared)
        else:
            lines += ["| case | requests/s |", "|---|---|"]
            lines += [f"| {name} | {number(rate)} |" for name, rate in _rates(run)]
            lines.append("")
        lines += [f"- {note}" for note in run.info.notes]
    return "\n".join(lines).rstrip() + "\n"


def _table_of_refs(comparisons: Sequence[RefComparison]) -> list[str]:
    lines = ["| case | commits | requests/s | ratio (95 %) | queries | verdict |", "|---|---|---|---|---|---|"]
    for item in comparisons:
        queries = " → ".join(figure(value, "g") for value in item.queries)
        rates = f"{number(item.first_rate)} → {number(item.other_rate)}"
        ratio = f"{number(item.ratio)} ({ratio_interval(item.low, item.high)})"
        bold: str = item.verdict
        if item.verdict == "slower" or item.more_queries:
            bold = f"**{item.verdict}**"
        lines.append(f"| {item.case} | `{item.first}` → `{item.other}` | {rates} | {ratio} | {queries} | {bold} |")
    return [*lines, ""]


def action(runs: Sequence[Run]) -> list[dict[str, object]]:
    """Figures for github-action-benchmark's tool `customBiggerIsBetter`.

    https://github.com/benchmark-action/github-action-benchmark#examples
    """
    rates = chain.from_iterable(map(_rates, runs))
    return [{"name": name, "unit": "requests/s", "value": rate} for name, rate in rates]


def bencher(runs: Sequence[Run]) -> dict[str, object]:
    """Figures in Bencher Metric Format. https://bencher.dev/docs/reference/bencher-metric-format/"""
    rates = chain.from_iterable(map(_rates, runs))
    return {name: {"throughput": {"value": rate}} for name, rate in rates}


def _rates(run: Run) -> list[tuple[str, float]]:
    """Each case of a run by its name, with its requests/s."""
    by_case = tables(run, run.info.plan.database)
    return [(" ".join(map(str, key[:5])), round(table.rate(key), 2)) for key, table in by_case.items()]
