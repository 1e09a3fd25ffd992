"""The report as one HTML file that needs nothing else: no network, no fonts, and no script to be readable."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from bench.report import (
    charts,
    conditions,
    extra_costs,
    findings,
    glossary,
    numbers,
    pick,
    ratings,
    redact,
    safety,
    small_charts,
    svg,
)
from bench.report.model import BASELINE, MEASURED, NOT_RUN, CaseRow, Panel, Report
from bench.report.numbers import plural, printable
from bench.report.rendered_configs import ConfigFile
from bench.report.reproduction import caching
from bench.report.reproduction import charts as published_charts
from bench.results import reproduction

TEMPLATES = Path(__file__).resolve().parent / "templates"

_SAFE_PATH = re.compile(r"[\w.~+-]+(/[\w.~+-]+)*")


def render(report: Report, files: Mapping[str, list[ConfigFile]]) -> str:
    """The whole document. `files` are the rendered configurations to embed."""
    return document(
        "report.html.j2",
        title=conditions.summary(report),
        report=report,
        run=report.run,
        plan=report.run.info.plan,
        files=files,
        caching=caching.beside(report),
        pick=pick.pick(report),
        safety=safety.safety(report),
        case_notes=case_notes(report),
        not_run=[row for row in report.rows if row.outcome == NOT_RUN],
        keep_alive=_keep_alive(report),
    )


def document(template: str, **context: object) -> str:
    """A whole document from a template, with its style and script inside."""
    script = _source("report.js")
    return (
        _environment()
        .get_template(template)
        .render(
            **context,
            style=Markup(_source("chart.css") + _source("report.css")),
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )


def picture(report: Report) -> str | None:
    """The throughput chart as an SVG file of its own; None when nothing was measured.

    It shows the workload of the published caching benchmark when that was measured, else the first workload.
    """
    panels = [panel for panel in report.main_panels if any(row.ok for row in panel.rows)]
    if not panels:
        return None
    wanted = reproduction.benchmarks()["caching"]["workload"]
    panel = next((panel for panel in panels if panel.setting.workload == wanted), panels[0])
    heading, subheading, foot = _captions(report, panel)
    return svg.standalone(
        charts.throughput_picture(report, panel),
        style=_source("chart.css"),
        heading=heading,
        subheading=subheading,
        foot=foot,
    )


def _captions(report: Report, panel: Panel) -> tuple[str, str, str]:
    """Heading, subheading and foot of the picture: what, under which load, on which machine and when."""
    environment, plan = report.run.environment, report.run.info.plan
    tool = environment.load_tool
    rounds = f"median and range of {plan.rounds} rounds" if plan.rounds > 1 else "one round"
    fallback = " (fallback)" if tool.fallback else ""
    load = f"load by {tool.name} {tool.version or ''}".strip() + fallback
    machine = f"{environment.cpu_model or 'CPU not known'}, {plural(environment.cores, 'core')}"
    when = f"{numbers.size(environment.memory_bytes)}; {numbers.when(report.run.info.started_at)}"
    return (
        f"Requests/s by stack and layer: {findings.setting_title(report, panel).replace('`', '')}",
        f"{panel.setting.load}, {rounds}; {load}",
        "; ".join([f"{machine}, {when}", *charts.footnotes(panel)]),
    )


def case_notes(report: Report) -> list[tuple[str, list[str]]]:
    """Each note of a case once, with the deployments it applies to."""
    found: dict[str, dict[str, None]] = {}
    for case in report.run.info.cases:
        for note in case.notes:
            found.setdefault(note, {})[f"{case.stack} with {case.layer}"] = None
    return [(note, list(deployments)) for note, deployments in found.items()]


def _keep_alive(report: Report) -> str:
    used = {trial.keep_alive for trial in report.run.trials if trial.status == "ok"}
    if used == {True}:
        return "Clients use keep-alive connections."
    if used == {False}:
        return "Each request opens a new connection."
    return ""


# ------------------------------------------------------------------------------------------- templates


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters |= _filters()
    environment.globals |= _globals()
    return environment


def _filters() -> dict[str, Callable[..., object]]:
    return {
        "code": code,
        "log_link": log_link,
        "number": numbers.number,
        "whole": numbers.whole,
        "times": numbers.times,
        "mib": numbers.mebibytes,
        "as_published": numbers.as_published,
        "median": numbers.median,
        "range_of": numbers.range_of,
        "plural": plural,
        "cell": cell,
    }


def _globals() -> dict[str, object]:
    return {
        "charts": charts,
        "conditions": conditions,
        "extra_costs": extra_costs,
        "findings": findings,
        "glossary": glossary,
        "numbers": numbers,
        "published_charts": published_charts,
        "ratings": ratings,
        "redact": redact,
        "small_charts": small_charts,
        "svg": svg,
        "check_groups": safety.GROUPS,
        "check_signs": safety.SIGNS,
        "count_checks": safety.count,
        "BASELINE": BASELINE,
        "MEASURED": MEASURED,
        "NOT_MEASURED": numbers.NOT_MEASURED,
    }


def _finalize(value: object) -> object:
    """Replace unsafe characters in every text that reaches the page."""
    return value if isinstance(value, Markup) else printable(value) if isinstance(value, str) else value


def _source(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def code(text: str) -> Markup:
    """Escaped text; names between backticks become code."""
    parts = printable(text).split("`")
    if len(parts) % 2 == 0:  # an odd backtick is no pair: it stays as it is
        parts[-2:] = ["`".join(parts[-2:])]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else escape(part) for index, part in enumerate(parts)
    )


def log_link(path: str) -> Markup:
    """A path inside the run's folder as a link; any other path as text."""
    text = Markup("<code>{}</code>").format(printable(path))
    if not _SAFE_PATH.fullmatch(path) or ".." in path.split("/"):
        return text
    return Markup('<a href="{}">{}</a>').format(quote(path), text)


def cell(row: CaseRow, field: str) -> Markup:
    """A table cell with the median of a field and its range as a tooltip; a dash for a row without figures."""
    figure = getattr(row, field) if hasattr(row, field) else row.figure(field)
    show = numbers.mebibytes if field == "memory_total" else numbers.number
    if row.outcome != MEASURED:
        return Markup('<td class="n none">{}</td>').format(numbers.DASH)
    if figure is None:
        return Markup('<td class="n none">{}</td>').format(numbers.NOT_MEASURED)
    return Markup('<td class="n" data-sort="{}" title="{}">{}</td>').format(
        repr(figure.median), numbers.range_of(figure, show), show(figure.median)
    )
