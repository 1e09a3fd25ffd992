"""The report as Markdown, for pasting into an issue: the same figures in tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from bench.report import conditions, extra_costs, findings, pick, ratings, safety
from bench.report.model import BASELINE, MEASURED, CaseRow, Failure, Panel, Report
from bench.report.numbers import (
    DASH,
    TIMES,
    as_published,
    mebibytes,
    median,
    one_line,
    plural,
    range_of,
    times,
    whole,
)
from bench.report.reproduction import caching

HEADS = (
    "stack",
    "layer",
    "rounds",
    "requests/s",
    "95 % interval",
    f"{TIMES} {BASELINE}",
    "p50 ms",
    "p90 ms",
    "p99 ms",
    "p99.9 ms",
    "max ms",
    "errors",
    "memory MiB",
    "MiB / 1,000 requests/s",
    "CPU s / 1,000",
)


def render(report: Report) -> str:
    """The whole document as text."""
    blocks = [
        f"# {conditions.summary(report)}",
        f"{conditions.measured(report)}. {conditions.timespan(report)}.",
        bullets(f"{name}: {plain(value)}" for name, value in conditions.machine(report)),
        " ".join(sentence(advice.sentence) for advice in pick.pick(report)),
        *_answers(report),
        bullets(sentence(note) for note in conditions.caveats(report)),
        "## Figures",
        "Medians of the rounds with their 95 % confidence interval; percentiles pooled over all rounds.",
    ]
    for panel in report.panels:
        blocks += [f"### {_panel_title(report, panel)}", _figures(panel)]
    blocks += _memory(report) + _costs(report) + _safety(report) + _stability(report) + _gaps(report)
    blocks += _published(report)
    blocks += [
        "## How it was measured",
        f"Made by {code(conditions.command(report))}.",
        bullets(conditions.facts(report)),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _panel_title(report: Report, panel: Panel) -> str:
    return f"{sentence(findings.setting_title(report, panel))}, {panel.setting.load}"


def _answers(report: Report) -> Iterable[str]:
    for answer in findings.answers(report):
        yield f"**{_panel_title(report, answer.panel)}.** " + " ".join(map(sentence, answer.sentences))


def _figures(panel: Panel) -> str:
    return table(HEADS, [_row(row) for row in panel.rows], left=3)


def _row(row: CaseRow) -> list[str]:
    names = [code(row.stack), code(row.layer)]
    if row.outcome != MEASURED:
        return [*names, row.outcome, *[DASH] * (len(HEADS) - 3)]
    rounds = f"{len(row.ok)}" + (f", {len(row.failed)} failed" if row.failed else "")
    ratio = "1" if row.layer == BASELINE else median(row.times_none, times)
    latencies = [median(row.figure(f"latency_{name}_ms")) for name in ("p50", "p90", "p99", "p999", "max")]
    return [
        *names,
        rounds + (", wrong answers" if row.wrong else ""),
        median(row.rate),
        range_of(row.rate),
        ratio,
        *latencies,
        whole(row.errors()),
        median(row.memory_total, mebibytes),
        median(row.memory_per_rate, mebibytes),
        median(row.cpu_total),
    ]


def _published(report: Report) -> list[str]:
    published = caching.beside(report)
    if published.panel is None:
        return []
    rows = [
        [
            plain(row.title),
            code(row.layer),
            as_published(row.requests_per_second),
            as_published(row.times_none) + TIMES,
            row.note or median(row.rate),
            DASH if row.note else median(row.ratio, times),
            DASH if row.note or row.layer == BASELINE else range_of(row.ratio),
        ]
        for row in published.layers
    ]
    heads = (
        "published layer",
        "layer here",
        "published requests/s",
        f"published {TIMES} {BASELINE}",
        "measured requests/s",
        f"measured {TIMES} {BASELINE}",
        "95 % interval",
    )
    return [
        "## Published and measured",
        f"“{published.title}” ({published.source}, {published.year}) beside {_panel_title(report, published.panel)}, "
        f"stack {code(published.stack or 'none')}.",
        table(heads, rows, left=2),
    ]


def _memory(report: Report) -> list[str]:
    heads = (
        "stack",
        "layer",
        "server or service",
        "peak MiB",
        "95 % interval",
        "CPU s / 1,000",
        "95 % interval",
        "processes",
    )
    blocks = []
    for panel in report.main_panels:
        rows = [
            [
                code(row.stack),
                code(row.layer),
                code(server),
                median(row.memory_peak(server), mebibytes),
                range_of(row.memory_peak(server), mebibytes),
                median(row.cpu(server)),
                range_of(row.cpu(server)),
                whole(row.processes(server)),
            ]
            for row in panel.rows
            for server in row.servers
        ]
        if rows:
            blocks += [f"### {_panel_title(report, panel)}", table(heads, rows, left=3)]
    return ["## Memory and CPU time by server and service", *blocks] if blocks else []


def _costs(report: Report) -> list[str]:
    """Other costs at the highest level."""
    blocks = []
    for panel in report.main_panels:
        heads = extra_costs.heads(panel)
        rows = [
            [code(row.stack), code(row.layer), *extra_costs.cells(panel, row)]
            for row in panel.rows
            if row.outcome == MEASURED
        ]
        if heads and rows:
            blocks += [f"### {_panel_title(report, panel)}", table(("stack", "layer", *heads), rows, left=2)]
    return ["## Other costs", *blocks] if blocks else []


def _safety(report: Report) -> list[str]:
    if not report.checks:
        return []
    found = safety.safety(report)
    rows = []
    for layer in found.layers:
        cells = [found.cell(layer, group) for group in found.groups]
        rows.append([code(layer), *(f"{safety.SIGNS[cell.word]} {cell.text}" if cell else DASH for cell in cells)])
    blocks = [
        "## Safety",
        "Checks by layer and group, over all stacks. A check that was not tried does not count as passed.",
        table(("layer", *found.groups), rows, left=1 + len(found.groups)),
    ]
    for title, remarks in (("Declared as not supported", found.declared), ("Not tried", found.not_tried)):
        if remarks:
            blocks += [f"### {title}", _remarks(remarks)]
    return [*blocks, *_checks_by_stack(report)]


def _remarks(remarks: Iterable[safety.CheckRemark]) -> str:
    rows = [
        [code(item.layer), code(", ".join(item.checks)), code(item.reason), code(", ".join(item.stacks))]
        for item in remarks
    ]
    return table(("layer", "checks", "reason", "stacks"), rows, left=4)


def _checks_by_stack(report: Report) -> Iterable[str]:
    rows = []
    for (stack, layer), checks in report.checks.items():
        count = safety.count(checks)
        rows.append([code(stack), code(layer), f"{count.passed:,} of {count.made:,}", count.remarks or DASH])
    yield "### By stack"
    yield table(("stack", "layer", "checks passed", "other"), rows, left=2)
    wrong = [
        [code(item.stack), code(item.layer), code(item.check), code(item.expected), code(item.got)]
        for item in report.run.checks
        if not item.ok
    ]
    if wrong:
        yield table(("stack", "layer", "wrong answer to", "expected", "got"), wrong, left=5)


def _stability(report: Report) -> list[str]:
    rows = [
        [
            code(item.stack),
            code(item.layer),
            code(item.workload),
            code(item.size),
            str(item.rating.rating),
            plain("; ".join(item.rating.reasons)) or DASH,
            plain(", ".join(item.rating.unknown)) or DASH,
        ]
        for item in ratings.rated(report)
    ]
    if not rows:
        return []
    heads = ("stack", "layer", "workload", "size", "stability", "reason", "not measured")
    bounds = table(("criterion", "meaning", "HIGH up to", "MEDIUM up to"), ratings.bounds(), left=2)
    return ["## Stability", plain(ratings.explanation()), table(heads, rows, left=7), bounds]


def _gaps(report: Report) -> list[str]:
    blocks = []
    for title, failures in (("Failed", report.failures), ("Voided", report.voided)):
        if failures:
            heads = ("stack", "layer", "workload", "level", "rounds", "reason", "log")
            blocks += [f"## {title}", table(heads, map(_failure, failures), left=3)]
    if ties := findings.ties(report):
        blocks += ["## Ties", bullets(map(sentence, ties))]
    if report.run.info.skips:
        rows = [
            [code(skip.stack), code(skip.layer), code(skip.workload) if skip.workload else "all", code(skip.reason)]
            for skip in report.run.info.skips
        ]
        blocks += ["## Skipped", table(("stack", "layer", "workload", "reason"), rows, left=4)]
    notes: dict[str, list[str]] = {}
    for case in report.run.info.cases:
        for note in case.notes:
            notes.setdefault(note, []).append(case.case_id)
    if notes:
        blocks += [
            "## Notes",
            bullets(f"{plain(note)} ({plural(len(cases), 'case')})" for note, cases in notes.items()),
        ]
    return blocks


def _failure(failure: Failure) -> list[str]:
    return [
        code(failure.stack),
        code(failure.layer),
        code(failure.setting.workload),
        failure.setting.load,
        ", ".join(map(str, failure.rounds)),
        code(failure.reason),
        ", ".join(map(code, failure.logs)) or DASH,
    ]


# ----------------------------------------------------------------------------------------------- markup


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, left: int) -> str:
    """A table: the first `left` columns are text, the others figures."""
    rule = ["---" if index < left else "---:" for index in range(len(heads))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [heads, rule, *rows])


def bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def code(text: str | None) -> str:
    """Text between backticks on one line; it cannot end a table cell, mention a person or open a tag."""
    if text is None:
        return DASH
    return "`" + one_line(text).replace("`", "'").replace("|", "\\|") + "`"


def plain(text: str) -> str:
    """Text without any Markdown markup."""
    return _escaped(one_line(text))


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", text).replace("@", "@\N{ZERO WIDTH SPACE}")


def sentence(text: str) -> str:
    """A sentence of the findings: names between backticks stay code, the rest is plain text."""
    text = one_line(text)
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _escaped(text)
    return "".join(code(part) if index % 2 else _escaped(part) for index, part in enumerate(parts))
