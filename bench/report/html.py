"""The report as one HTML file that needs nothing else: no network, no fonts, no script to be readable."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from bench.report import charts, configs, costs, findings, glossary, numbers, ratings, redact, safety, svg
from bench.report.model import BASELINE, MEASURED, NOT_RUN, Panel, Report, Row
from bench.report.numbers import plural, printable
from bench.report.reproduction import published
from bench.results import reproduction

TEMPLATES = Path(__file__).resolve().parent / "templates"

_SAFE_PATH = re.compile(r"[\w.~+-]+(/[\w.~+-]+)*")


def render(report: Report, files: Mapping[str, list[configs.ConfigFile]]) -> str:
    """The whole document. `files` are the rendered configurations to embed."""
    return document(
        "report.html.j2",
        title=findings.summary(report),
        report=report,
        run=report.run,
        plan=report.run.info.plan,
        answers=findings.answers(report),
        summary=findings.summary(report),
        measured=findings.measured(report),
        timespan=findings.timespan(report),
        caveats=findings.caveats(report),
        machine=findings.machine(report),
        caching=published.caching(report),
        pick=findings.pick(report),
        inconclusive=findings.inconclusive(report),
        facts=findings.facts(report),
        several_levels=len({panel.setting.level for panel in report.panels}) > 1,
        costs=costs,
        safety=safety.safety(report),
        safety_count=safety.count,
        signs=safety.SIGNS,
        group_titles=safety.GROUPS,
        ratings=ratings.rated(report),
        formula=ratings.formula(),
        checked_stacks=list(dict.fromkeys(stack for stack, _ in report.checks)),
        checked_layers=list(dict.fromkeys(layer for _, layer in report.checks)),
        wrong_checks=[check for check in report.run.checks if not check.ok],
        case_notes=case_notes(report),
        skips=report.run.info.skips,
        not_run=[row for row in report.rows if row.outcome == NOT_RUN],
        keep_alive=_keep_alive(report),
        command=findings.command(report),
        files=files,
        metrics=glossary.metrics(),
        words=glossary.WORDS,
    )


def document(template: str, **context: object) -> str:
    """A whole document of a template, with its style and script inside."""
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

    It shows the workload of the published caching benchmark where that was measured, else the first.
    """
    panels = [panel for panel in report.main_panels if any(row.ok for row in panel.rows)]
    if not panels:
        return None
    wanted = reproduction.benchmarks()["caching"]["workload"]
    panel = next((panel for panel in panels if panel.setting.workload == wanted), panels[0])
    environment, plan = report.run.environment, report.run.info.plan
    tool = environment.load_tool
    spread = f", {plural(plan.rounds, 'round')}: median and range" if plan.rounds > 1 else ", one round"
    fallback = " (fallback)" if tool.fallback else ""
    return svg.standalone(
        charts.picture(report, panel),
        style=_source("chart.css"),
        heading=f"Requests/s by stack and layer: {findings.setting_title(report, panel).replace('`', '')}",
        subheading=f"{panel.setting.level:,} connections{spread}; load by {tool.name} {tool.version or ''}".strip()
        + fallback,
        foot=f"{environment.cpu_model or 'CPU not known'}, {plural(environment.cores, 'core')}, "
        f"{numbers.size(environment.memory_bytes)}; {numbers.when(report.run.info.started_at)}"
        + "".join(f"; {mark}" for mark in marks(panel)),
    )


def marks(panel: Panel) -> list[str]:
    """What the signs behind a layer's name mean, of those that occur in a panel."""
    found = []
    if any(row.ok and row.failed for row in panel.rows):
        found.append("* not every round succeeded")
    if any(row.ok and row.wrong for row in panel.rows):
        found.append("† gave wrong answers and is not ranked")
    return found


def case_notes(report: Report) -> list[tuple[str, list[str]]]:
    """Each note of a case once, with the deployments it is about."""
    found: dict[str, dict[str, None]] = {}
    for case in report.run.info.cases:
        for note in case.notes:
            found.setdefault(note, {})[f"{case.stack} with {case.layer}"] = None
    return [(note, list(about)) for note, about in found.items()]


def _keep_alive(report: Report) -> str:
    said = {trial.keep_alive for trial in report.run.trials if trial.status == "ok"}
    if said == {True}:
        return "Connections were kept alive and reused."
    if said == {False}:
        return "Each request opened a connection of its own."
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
    environment.filters |= {
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
    environment.globals |= {
        "chart": svg,
        "drawings": charts,
        "marks": marks,
        "redact": redact,
        "numbers": numbers,
        "panel_title": findings.setting_title,
        "answers_of": findings.answers,
        "measured_of": findings.measured,
        "command_of": findings.command,
        "BASELINE": BASELINE,
        "MEASURED": MEASURED,
        "NOT_MEASURED": numbers.NOT_MEASURED,
    }
    return environment


def _finalize(value: object) -> object:
    """Every text that reaches the page, without characters that no page may hold."""
    return value if isinstance(value, Markup) else printable(value) if isinstance(value, str) else value


def _source(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def code(text: str) -> Markup:
    """Escaped text in which what stands between backticks is code."""
    parts = printable(text).split("`")
    if len(parts) % 2 == 0:  # an odd backtick is not a pair: it stays as it is
        parts[-2:] = ["`".join(parts[-2:])]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else escape(part) for index, part in enumerate(parts)
    )


def log_link(path: str) -> Markup:
    """A path inside the run's folder as a link beside the report; any other path as text only."""
    text = Markup("<code>{}</code>").format(printable(path))
    if not _SAFE_PATH.fullmatch(path) or ".." in path.split("/"):
        return text
    return Markup('<a href="{}">{}</a>').format(quote(path), text)


def cell(row: Row, field: str) -> Markup:
    """A table cell with the median of a field: its range on hover, `not measured` in words, a dash unmeasured."""
    figure = getattr(row, field) if hasattr(row, field) else row.figure(field)
    show = numbers.mebibytes if field == "memory_total" else numbers.number
    if row.outcome != MEASURED:
        return Markup('<td class="n none">{}</td>').format(numbers.DASH)
    if figure is None:
        return Markup('<td class="n none">{}</td>').format(numbers.NOT_MEASURED)
    return Markup('<td class="n" data-sort="{}" title="{}">{}</td>').format(
        repr(figure.median), numbers.range_of(figure, show), show(figure.median)
    )
