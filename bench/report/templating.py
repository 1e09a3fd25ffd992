"""The templates of all documents: where they are, and the functions they call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bench.figures import words
from bench.report import (
    capacity,
    charts,
    conditions,
    extra_costs,
    findings,
    fits,
    gaps,
    glossary,
    host_costs,
    numbers,
    pick,
    redact,
    safety,
    small_charts,
    svg,
)
from bench.report.model import MEASURED, Report
from bench.report.plots import Plots
from bench.report.reproduction import caching
from bench.report.reproduction import charts as published_charts
from bench.results.records import GROUPS, NO_LAYER

FOLDER = Path(__file__).resolve().parent / "templates"

_FILTERS = {
    "number": numbers.number,
    "whole": numbers.whole,
    "times": numbers.times,
    "mib": numbers.mebibytes,
    "as_published": numbers.as_published,
    "median": numbers.median,
    "range_of": numbers.range_of,
    "plural": words.plural,
}

_GLOBALS = {
    "capacity": capacity,
    "charts": charts,
    "conditions": conditions,
    "extra_costs": extra_costs,
    "findings": findings,
    "fits": fits,
    "gaps": gaps,
    "glossary": glossary,
    "host_costs": host_costs,
    "numbers": numbers,
    "published_charts": published_charts,
    "redact": redact,
    "small_charts": small_charts,
    "svg": svg,
    "check_groups": GROUPS,
    "check_signs": safety.SIGNS,
    "count_checks": safety.count,
    "NO_LAYER": NO_LAYER,
    "MEASURED": MEASURED,
    "NOT_MEASURED": numbers.NOT_MEASURED,
}


@functools.cache
def environment(escaped: Callable[[object], object], **functions: Callable[..., object]) -> Environment:
    """The templates' environment. `escaped` makes a value safe for the form; the functions are also filters."""
    made = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=escaped,
    )
    made.filters |= _FILTERS | functions
    made.globals |= _GLOBALS | functions
    return made


def run_context(report: Report) -> dict[str, object]:
    """The variables of the templates of a run."""
    return {
        "report": report,
        "run": report.run,
        "plan": report.run.info.plan,
        "caching": caching.beside(report),
        "plots": Plots((report,)),
        "question": pick.question(report),
        "pick": pick.pick(report),
        "safety": safety.safety(report),
        "case_notes": conditions.case_notes(report),
    }
