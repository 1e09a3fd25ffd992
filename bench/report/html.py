"""The report as one HTML file that needs nothing else: no network, no fonts, and no script to be readable."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import msgspec
from markupsafe import Markup, escape

from bench.figures.words import plural
from bench.report import charts, conditions, findings, numbers, svg, templating
from bench.report.model import MEASURED, NOT_RUN, CaseRow, Panel, Report
from bench.report.numbers import printable
from bench.report.plots import Plots
from bench.report.rendered_configs import ConfigGroup
from bench.results import reproduction
from bench.results.trials import Trial

UPLOT = Path(__file__).resolve().parent / "vendor" / "uplot"
_SAFE_PATH = re.compile(r"[\w.~+@,=-]+(/[\w.~+@,=-]+)*")


def render(report: Report, configs: Sequence[ConfigGroup]) -> str:
    """The whole document with the rendered configurations."""
    context = {
        "title": conditions.summary(report),
        "configs": configs,
        "not_run": [row for row in report.rows if row.outcome == NOT_RUN],
        "keep_alive": _keep_alive(report),
    }
    return document("report.html.j2", context | templating.run_context(report))


def document(template: str, context: Mapping[str, object]) -> str:
    """A whole document from a template, with its style and scripts inside; uPlot only where `plots` need it."""
    plots = context.get("plots")
    data = msgspec.to_builtins(plots.data) if isinstance(plots, Plots) else {}
    sources = [_source("report.js")]
    style = _source("chart.css") + _source("report.css")
    if data:
        sources += [(UPLOT / "uPlot.iife.min.js").read_text(encoding="utf-8"), _source("plots.js")]
        style += (UPLOT / "uPlot.min.css").read_text(encoding="utf-8")
    environment = templating.environment(_printable, code=code, log_link=log_link, cell=cell, raw_link=raw_link)
    return environment.get_template(template).render(
        {
            **context,
            "data": data,
            "style": Markup(style),
            "scripts": [Markup(source) for source in sources],
            "script_hashes": [_hash(source) for source in sources],
        }
    )


def _hash(source: str) -> str:
    """What a Content-Security-Policy allows a script by."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


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
    most = max((len(row.ok) for row in panel.rows), default=1) if plan.until else plan.rounds
    rounds = f"median and range of {'up to ' if plan.until else ''}{most} rounds" if most > 1 else "one round"
    fallback = " (fallback)" if tool.fallback else ""
    load = f"load by {tool.name} {tool.version or ''}".strip() + fallback
    machine = f"{environment.cpu_model or 'CPU not known'}, {plural(environment.cores, 'core')}"
    when = f"{numbers.size(environment.memory_bytes)}; {numbers.when(report.run.info.started_at)}"
    return (
        f"Requests/s by stack and layer: {findings.setting_title(report, panel).replace('`', '')}",
        f"{panel.setting.load}, {rounds}; {load}",
        "; ".join([f"{machine}, {when}", *charts.footnotes(panel)]),
    )


def _keep_alive(report: Report) -> str:
    used = {trial.keep_alive for trial in report.run.trials if trial.status == "ok"}
    if used == {True}:
        return "Clients use keep-alive connections."
    if used == {False}:
        return "Each request opens a new connection."
    return ""


def _printable(value: object) -> object:
    """Replace unsafe characters in every text that reaches the page."""
    return value if isinstance(value, Markup) else printable(value) if isinstance(value, str) else value


def _source(name: str) -> str:
    return (templating.FOLDER / name).read_text(encoding="utf-8")


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


def cell(row: CaseRow, field: str, anchor: str) -> Markup:
    """A table cell: the median of a field, its range as a tooltip and a link to its trials; a dash without figures."""
    figure = getattr(row, field) if hasattr(row, field) else row.figure(field)
    show = numbers.mebibytes if field == "memory_total" else numbers.number
    if row.outcome != MEASURED:
        return Markup('<td class="n none">{}</td>').format(numbers.DASH)
    if figure is None:
        return Markup('<td class="n none">{}</td>').format(numbers.NOT_MEASURED)
    return Markup('<td class="n" data-sort="{}" title="{}"><a href="#{}">{}</a></td>').format(
        f"{figure.median:.6g}", numbers.range_of(figure, show), anchor, show(figure.median)
    )


def raw_link(trial: Trial, text: str) -> Markup:
    """A text as a link to what the load tool and the servers printed in a trial."""
    path = f"raw/{trial.trial_id}/"
    if not _SAFE_PATH.fullmatch(path.rstrip("/")) or ".." in path.split("/"):
        return escape(text)
    return Markup('<a href="{}">{}</a>').format(quote(path), text)
