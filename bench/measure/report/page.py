"""The page and the picture, rendered only from the document."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from bench import words
from bench.measure.records.records import options_of
from bench.measure.records.trials import UNEVEN
from bench.measure.report import build, chart, fault_rows
from bench.measure.report.document import CaseRow, Checks, Document, FaultRow, Ranking, Ratio
from bench.serve.catalog.names import NO_LAYER

TEMPLATES = Path(__file__).resolve().parent / "templates"
# A path below a folder that no browser could read as an address.
PLAIN_PATH = re.compile(r"[\w.@+~=,-]+(?:/[\w.@+~=,-]+)*")
# Figures of single faults -> their headings.
FAULT_FIGURES = {"server_errors": "5xx", "workers_ended": "crashes", "oom_kills": "killed"}


def render(document: Document, data: str = "report.json") -> str:
    """The page as HTML; `data` is the file with the document beside it."""
    script = (TEMPLATES / "document.js").read_text("utf-8")
    template = _environment().get_template("document.html.j2")
    return template.render(
        document=document,
        places=build.places(document.runs, document.boards),
        data=data,
        script=Markup(script),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def picture(document: Document) -> str | None:
    """The throughput chart of the first board; None if nothing was measured."""
    board = next((board for board in document.boards if board.best is not None), None)
    if board is None:
        return None
    run = document.runs[board.run]
    groups: dict[str, list[tuple[str, int, list[float]]]] = {}
    for workload in board.workloads:
        rows = [row for row in board.cases if workload in row.loads]
        groups[workload] = [(row.name, colour(board, row), list(row.loads[workload].rates.values())) for row in rows]
    facts = ", ".join(filter(None, (run.facts.get("Machine"), words.timestamp_text(run.started_at))))
    return chart.picture(board.answer[0], f"Every round a dot; {board.load}", groups, facts)


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else words.printable(value),
    )
    environment.filters |= {
        "number": words.number,
        "when": words.timestamp_text,
        "mib": _mib,
        "percent": _percent,
        "quote": quote,
    }
    environment.filters["unbroken"] = _unbroken
    functions = [cell, colour, columns, fault_table, lacking, levels, link, log_of, matrix, notes]
    functions += [options_of, ratio_words, times_axis, every_note]
    environment.globals |= {function.__name__: function for function in functions}
    environment.globals |= {"chart": chart, "words": words, "NO_LAYER": NO_LAYER}
    return environment


def _mib(value: float | None) -> str:
    return words.number(value and value / words.MIB)


def _unbroken(text: str) -> Markup:
    """A heading without line breaks inside names, such as a stack's."""
    parts = []
    for part in words.printable(text).split():
        shown = escape(part)
        if "-" in part:
            shown = chart.tag("span", shown, cls="unbroken")
        parts.append(shown)
    return Markup(" ").join(parts)


def _percent(value: float | None) -> str:
    if value is None:
        return words.NOT_MEASURED
    return f"{value:.0%}"


# ------------------------------------------------------------------------------------------- the table


def colour(board: Ranking, row: CaseRow) -> int:
    """The number of a layer's colour; the baseline has a fixed one."""
    layers = sorted({each.layer for each in board.cases} - {NO_LAYER})
    if row.layer not in layers:
        return 0
    return 1 + layers.index(row.layer) % (chart.COLOURS - 1)


# Column of costs or checks -> its head and its text; empty if not measured.
COLUMNS: dict[str, tuple[str, Callable[[CaseRow], str]]] = {
    "memory": ("memory MiB", lambda row: _known(row.memory_peak_bytes or None, _mib)),
    "cpu": ("CPU s per 1,000", lambda row: _known(row.cpu_seconds_per_1000_requests, words.number)),
    "connections": ("database connections", lambda row: _known(row.database_connections_peak, "{:,}".format)),
    "slow_clients": ("slow clients stop it", lambda row: _known(row.slow_clients, lambda count: f"{count or 'none'}")),
    "deploy": ("lost by a deploy", lambda row: _known(row.deploy_lost, words.compact)),
    "checks": ("checks passed", lambda row: _known(row.checks, _checked)),
}


def _known(value: Any, text: Callable[[Any], str]) -> str:
    if value is None:
        return ""
    return text(value)


def _checked(checks: Checks) -> str:
    if checks.failed:
        return f"{len(checks.failed)} failed"
    return f"{checks.passed:,}"


def columns(board: Ranking) -> dict[str, str]:
    """The columns with a figure for any case of the board -> their heads."""
    return {name: head for name, (head, text) in COLUMNS.items() if any(map(text, board.cases))}


def cell(row: CaseRow, column: str) -> str:
    """A figure of a case as text; empty if not measured."""
    return COLUMNS[column][1](row)


def lacking(board: Ranking) -> list[str]:
    """Columns without a figure for any case of the board."""
    if "deploy" in columns(board):
        return []
    return ["slow clients", "deploys"]


def ratio_words(ratio: Ratio) -> str:
    """`1.9 (1.8 to 2.1)`; only the figure if the noise is unknown."""
    if ratio.low == ratio.high == 1:
        return "1\N{MULTIPLICATION SIGN}"
    if ratio.low is None:
        return f"{words.number(ratio.estimate)}\N{MULTIPLICATION SIGN} (no interval)"
    return f"{words.number(ratio.estimate)}\N{MULTIPLICATION SIGN} ({words.interval_text(ratio.low, ratio.high)})"


def times_axis(ratios: Sequence[Ratio]) -> chart.Axis:
    """The axis of a column of ratios: from the best (or the beginning of an interval beyond it) to the slowest."""
    ends: list[float | None] = [1.0]
    for ratio in ratios:
        ends += [ratio.estimate, ratio.low, ratio.high]
    return chart.Axis.of(filter(None, ends), ratio=True)


def link(document: Document, run: int, path: str) -> str:
    """A file of a run, relative to the page."""
    directory = document.runs[run].directory
    if directory != ".":
        path = f"{directory}/{path}"
    return quote(path)


def log_of(row: CaseRow) -> str | None:
    """The log of a failure, if its path is plain and inside the run's folder: records come from anywhere."""
    logs = (load.log for load in row.loads.values())
    return next((log for log in logs if log and PLAIN_PATH.fullmatch(log) and ".." not in log.split("/")), None)


def notes(board: Ranking) -> dict[str, str]:
    """Differences between the cases -> cases with this difference; a stack if all its layers have it."""
    by_note: dict[str, list[CaseRow]] = {}
    for row in board.cases:
        texts = [words.one_line(note).removeprefix(f"{row.stack}: ") for note in row.notes]
        if row.needs_proxy:
            texts.append("needs a proxy in front to terminate TLS")
        worst = max((load.imbalance or 0 for load in row.loads.values()), default=0)
        if worst >= UNEVEN:
            texts.append(f"its busiest worker did {words.number(worst)} times the mean of all")
        if errors := sum(load.errors for load in row.loads.values()):
            requests = sum(load.requests for load in row.loads.values())
            texts.append(f"{errors:,} of {requests:,} requests without a right response")
        for text in texts:
            by_note.setdefault(text, []).append(row)
    return {text: _names(board, rows) for text, rows in by_note.items()}


def _names(board: Ranking, rows: Sequence[CaseRow]) -> str:
    if len(rows) == len(board.cases) > 1:
        return "every case"
    partly = {row.stack for row in board.cases if row not in rows}
    complete = {row.stack for row in rows} - partly
    names: dict[str, None] = {}
    for row in rows:
        if row.stack in complete:
            names[row.stack] = None
        else:
            names[row.name] = None
    return words.joined(list(names))


# --------------------------------------------------------------------------------------- other tables


def levels(board: Ranking) -> dict[str, Markup]:
    """Workload that has several levels -> a chart of its figures over them."""
    charts = {}
    for workload in board.workloads:
        series: list[chart.Line] = []
        for number, row in enumerate(board.cases, 1):
            if workload not in row.loads:
                continue
            if points := [(point.level, point.value) for point in row.loads[workload].points if point.value]:
                series.append((f"{number}", colour(board, row), points))
        if any(len(points) > 1 for _, _, points in series):
            title = f"{workload}: {board.value} over {board.unit}"
            charts[workload] = chart.lines(title, series, board.limit_ms)
    return charts


def every_note(document: Document) -> list[str]:
    """Notes for the reader, each once; with the run's name if there are several runs."""
    by_text: dict[str, list[str]] = {}
    for run in document.runs:
        texts = list(run.notes)
        texts += [f"Cannot run here: {words.first_names(names)}: {reason}." for reason, names in run.skips.items()]
        texts += [
            f"Known limitation: {_each_once(names)}: {reason}." for reason, names in run.known_limitations.items()
        ]
        for text in texts:
            by_text.setdefault(text, []).append(run.name)
    notes = []
    for text, names in by_text.items():
        # A note of one run among several.
        if len(names) == 1 and len(document.runs) > 1:
            text = f"{names[0]}: {text}"
        notes.append(text)
    for outcome, words_for in (("failed", "Not as expected"), ("discarded", "Discarded")):
        why = fault_rows.reasons(document.faults, outcome)
        notes += [f"{words_for}: {_each_once(names)}: {reason}." for reason, names in why.items()]
    return notes


def _each_once(names: Sequence[str]) -> str:
    """`check on case` and `check on other` as `check on case and other`."""
    by_check: dict[str, list[str]] = {}
    for name in names:
        what, _, case = name.partition(" on ")
        by_check.setdefault(what, []).append(case)
    return words.first_names([f"{what} on {words.first_names(cases)}" for what, cases in by_check.items()])


def matrix(document: Document) -> Mapping[str, list[CaseRow | None]]:
    """Case -> its row on each board, for cases on several boards."""
    by_case: dict[str, list[CaseRow | None]] = {}
    for number, board in enumerate(document.boards):
        for row in board.cases:
            by_case.setdefault(row.name, [None] * len(document.boards))[number] = row
    return {name: rows for name, rows in by_case.items() if len(rows) - rows.count(None) > 1}


def fault_table(document: Document) -> Mapping[str, list[str]]:
    """Fault -> its text on each case."""
    by_fault: dict[str, list[str]] = {}
    for number, case in enumerate(document.faults):
        for row in case.faults:
            by_fault.setdefault(row.fault, [""] * len(document.faults))[number] = fault_words(row)
    return by_fault


def fault_words(row: FaultRow) -> str:
    """`0 lost, mixed 0.4 s`, `12 lost, back in 1.3 s`, `failed, 3 lost`, `skipped`."""
    if row.outcome not in ("passed", "known limitation", "failed") or row.requests_lost is None:
        return row.outcome
    parts = []
    if row.outcome == "failed":
        parts.append(row.outcome)
    figures = {name: words.compact(value) for name, value in row.figures.items() if value is not None}
    if fault_rows.STOPS_AT in figures:
        return ", ".join([*parts, f"stops at {figures[fault_rows.STOPS_AT]}"])
    if fault_rows.STOPS_AT in row.figures:
        return ", ".join([*parts, f"{fault_rows.MAX_SLOW} do not stop it"])
    parts.append(f"{words.compact(row.requests_lost)} lost")
    parts += [f"{figures[name]} {word}" for name, word in FAULT_FIGURES.items() if name in figures]
    seconds = {"back in": row.requests_lost and row.recovery_s, "mixed": row.mixed_s, "stale": row.stale_s}
    parts += [f"{word} {words.compact(value)}\N{NO-BREAK SPACE}s" for word, value in seconds.items() if value]
    if row.wrong:
        parts.append(f"{words.compact(row.wrong)} wrong")
    by = (row.operator or "nothing").partition(",")[0]
    if row.group == "killed" and by != "nothing":
        parts.append(f"after a {by}")
    return ", ".join(parts)
