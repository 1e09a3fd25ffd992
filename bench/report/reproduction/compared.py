"""The report of a reproduction in every form: published beside measured, and which conclusions hold here."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from bench.figures.stats import Spread
from bench.report import charts, findings, glossary, html, markdown, numbers
from bench.report.csv import cell as csv_cell
from bench.report.model import BASELINE, MEASURED
from bench.report.numbers import DASH, NOT_MEASURED, as_published, range_of, times
from bench.report.reproduction import claims
from bench.report.reproduction.claims import HOLDS, NOT
from bench.report.reproduction.side_by_side import Cell, Column, Line, Reproduced

INTERVAL = "95 % interval"
SIGNS = {HOLDS: "\N{CHECK MARK}", NOT: "\N{BALLOT X}", claims.INCONCLUSIVE: "?", claims.NOT_MEASURED: DASH}


# ------------------------------------------------------------------------------------------------ texts


def heading(found: Reproduced) -> str:
    """Whose benchmark it is."""
    return f"{found.data['title']}, repeated"


def opening(found: Reproduced) -> str:
    """Where the questions come from, and what is the same and what is not."""
    data = found.data
    machine = f" Its machine: {data['machine']}." if "machine" in data else ""
    source = f"{data['source'][:1].upper()}{data['source'][1:]}, {data['year']}."
    return f"{source} It asked: {data['question']}{machine} Its load: {data['load']}."


def caveats(found: Reproduced) -> list[str]:
    """What a reader must know first."""
    notes = []
    if found.record.quick:
        notes.append("Made with --quick: fewer and shorter rounds than published, good for the order of things only.")
    if found.record.finished_at is None:
        notes.append("This reproduction did not finish: it shows what was measured until then.")
    notes.append(
        "Machines and versions of the publication are gone, so its figures are history: what can be set side by side "
        "are ratios, each against the baseline of its own side."
    )
    for part in found.parts:
        if part.reason:
            notes.append(f"Part `{part.name}` is left out: {part.reason}.")
        notes += [f"Part `{part.name}`: {note}." for note in part.notes]
    return notes + [note for note in findings.joint_caveats(found.reports) if note not in notes]


def machine(found: Reproduced) -> list[tuple[str, str]]:
    """Facts about the machine, which all parts share; load and database are each part's own."""
    facts = findings.machine(found.reports[0])
    return facts if len(found.reports) == 1 else [fact for fact in facts if fact[0] not in ("Load", "Database")]


def left_out(found: Reproduced) -> list[tuple[str, str, str]]:
    """What has no figure: of what, what became of it, and why."""
    said = []
    for part in found.parts:
        if part.reason:
            said.append((f"part {part.name}", "could not run here", part.reason))
        if not part.report:
            continue
        for skip in part.report.run.info.skips:
            said.append((plain_name(found, skip.stack, skip.layer), "skipped", skip.reason))
        for word, failures in (("failed", part.report.failures), ("voided", part.report.voided)):
            for failure in failures:
                rounds = numbers.joined(list(map(str, failure.rounds)))
                setting = failure.setting
                size = f", size {setting.size}" if setting.size != "unlimited" else ""
                name = f"{plain_name(found, failure.stack, failure.layer)}, {setting.workload}{size}, {setting.load}"
                said.append((name, f"{word} in round{'s'[: len(failure.rounds) > 1]} {rounds}", failure.reason))
    return said


def has_layers(found: Reproduced) -> bool:
    """Whether any run has a layer other than `none`, so that layers must be named."""
    return any(layer != BASELINE for report in found.reports for layer in report.layers)


def plain_name(found: Reproduced, stack: str, layer: str) -> str:
    """A deployment, with its layer where the reproduction has layers."""
    return f"{stack} with {layer}" if has_layers(found) else stack


def said(found: Reproduced, sentence: str) -> str:
    """A sentence about deployments, without the layer where there is none but `none`."""
    return sentence if has_layers(found) else sentence.replace(f" with `{BASELINE}`", "")


def pick(found: Reproduced) -> list[str]:
    """The answer of the run that repeats the publication's main part: which to pick, and what it costs."""
    report = found.reports[0]
    if sum(len(panel.ranked) > 1 for panel in report.main_panels) == 0:
        return []
    return [said(found, sentence) for sentence in findings.pick(report, short=True)]


def without_graph(found: Reproduced) -> list[str]:
    """The deployments that have no memory over time at the highest level, each with its outcome."""
    return [
        f"{plain_name(found, row.stack, row.layer)} ({row.outcome})"
        for report in found.reports
        for panel in report.main_panels
        for row in panel.rows
        if row.outcome != MEASURED
    ]


def without_ratio(found: Reproduced, column: Column) -> list[str]:
    """Why rows with a figure have no ratio: each baseline that was not measured."""
    index = found.columns.index(column)
    if column.is_rating:
        return []
    return [
        f"The baseline {where(line, found)} has no figure here ({line.cells[index].why}): "
        "nothing can be set against it."
        for line in found.lines
        if line.baseline and line.cells[index].measured is None
    ]


def shown(cell: Cell, column: Column) -> str:
    """The measured figure of a cell as text."""
    if column.is_rating:
        return cell.measured or NOT_MEASURED
    return numbers.median(cell.measured, column.show) if cell.measured else NOT_MEASURED


def published(cell: Cell) -> str:
    """The published figure of a cell as text."""
    if cell.published is None:
        return DASH
    return cell.published if isinstance(cell.published, str) else as_published(cell.published)


def ratio(line: Line, cell: Cell) -> str:
    """The measured ratio to the baseline."""
    if line.baseline:
        return "1" if cell.measured else DASH
    return times(cell.ratio.median) if cell.ratio else DASH


def ratio_range(line: Line, cell: Cell) -> str:
    """The 95 % interval of that ratio; empty where there is none."""
    return "" if line.baseline or cell.ratio is None or cell.ratio.count < 2 else range_of(cell.ratio)


def published_ratio(line: Line, cell: Cell) -> str:
    """The published ratio to the baseline."""
    if line.baseline:
        return "1" if cell.published is not None else DASH
    return DASH if cell.published_ratio is None else times(cell.published_ratio)


def baselines(found: Reproduced) -> str:
    """What the ratios are against, in words."""
    names = list(dict.fromkeys(where(line, found) for line in found.lines if line.baseline))
    return numbers.joined(names)


def ratios_note(found: Reproduced) -> str:
    """What the ratios are, and why one need not be the quotient of the figures beside it."""
    return (
        f"Ratios are against {baselines(found)}, the published ones against the published baseline and the measured "
        "ones against the measured one. A measured ratio is the median of its rounds' ratios, round by round, so it "
        "need not be the quotient of the two medians; two runs' rounds are no pairs, there it is that quotient."
    )


def where(line: Line, found: Reproduced) -> str:
    """A line's title, with its size where sizes differ."""
    return f"{line.title} ({line.size})" if _sizes_differ(found) else line.title


def against(line: Line, found: Reproduced) -> str:
    """The baseline of a line, named as `where` names it."""
    return f"{line.against} ({line.against_size})" if _sizes_differ(found) else line.against


def _sizes_differ(found: Reproduced) -> bool:
    return len({line.size for line in found.lines}) > 1


# ------------------------------------------------------------------------------------------------- HTML


def as_html(found: Reproduced) -> str:
    """The whole document."""
    first = found.reports[0]
    return html.document(
        "reproduction.html.j2",
        found=found,
        texts=_Texts(found),
        report=first,
        run=first.run,
        plan=first.run.info.plan,
        machine=machine(found),
        title=heading(found),
        metrics=glossary.metrics(),
        words=glossary.WORDS,
    )


class _Texts:
    """The functions of this module for the template, bound to the reproduction."""

    def __init__(self, found: Reproduced):
        self.found = found
        self.opening, self.caveats, self.ratios_note = opening(found), caveats(found), ratios_note(found)
        self.summary = claims.summary(list(found.findings))
        self.signs = SIGNS
        self.gaps = left_out(found)
        self.shown, self.published = shown, published
        self.ratio, self.ratio_range, self.published_ratio = ratio, ratio_range, published_ratio
        self.pick = pick(found)
        self.without_graph = without_graph(found)

    def said(self, sentence: str) -> str:
        return said(self.found, sentence)

    def without_ratio(self, column: Column) -> list[str]:
        return without_ratio(self.found, column)

    def where(self, line: Line) -> str:
        return where(line, self.found)

    def drawing(self, column: Column) -> list[charts.View]:
        """Published and measured ratios of a column, or measured figures where nothing was published."""
        index = self.found.columns.index(column)
        return charts.reproduced(self.found, column, index, self.where, lambda line: against(line, self.found))

    def drawn(self, column: Column) -> bool:
        """Whether the column has a figure to draw."""
        index = self.found.columns.index(column)
        return not column.is_rating and any(line.cells[index].measured for line in self.found.lines)


# --------------------------------------------------------------------------------------------- Markdown


def as_markdown(found: Reproduced) -> str:
    """The whole document as Markdown."""
    blocks = [
        f"# {markdown.plain(heading(found))}",
        markdown.sentence(opening(found)),
        f"**{claims.summary(list(found.findings))}**",
        *([" ".join(map(markdown.sentence, pick(found)))] if pick(found) else []),
        markdown.table(
            ("conclusion", "today", "holds for", "figures"),
            [
                [
                    markdown.plain(item.claim),
                    f"{SIGNS[item.verdict]} {item.verdict}",
                    item.bounds or DASH,
                    markdown.sentence(item.sentence),
                ]
                for item in found.findings
            ],
            left=4,
        ),
        "\n".join(f"- {markdown.sentence(note)}" for note in caveats(found)),
        "## Published and measured",
        markdown.sentence(ratios_note(found)),
    ]
    for index, column in enumerate(found.columns):
        blocks += [f"### {markdown.plain(column.title)}", _markdown_table(found, column, index)]
        blocks += map(markdown.sentence, without_ratio(found, column))
    blocks += ["## Which to pick on this machine"]
    for report in found.reports:
        for answer in findings.answers(report):
            title = f"{findings.setting_title(report, answer.panel)} at {answer.panel.setting.load}"
            blocks.append(f"**{markdown.sentence(title)}.** " + " ".join(_sentences(found, answer)))
    if gaps := left_out(found):
        rows = [[markdown.plain(name), outcome, markdown.code(reason)] for name, outcome, reason in gaps]
        blocks += ["## Left out", markdown.table(("what", "outcome", "reason"), rows, left=3)]
    blocks += ["## Runs"]
    for part in found.parts:
        if part.report:
            command = markdown.code(findings.command(part.report))
            link = f"[{markdown.plain(part.name)}]({part.name}/report.md)"
            blocks.append(f"- {link}, with all its figures: {findings.measured(part.report)}; made by {command}")
    return "\n\n".join(blocks) + "\n"


def _markdown_table(found: Reproduced, column: Column, index: int) -> str:
    heads = ["row", "here"] + (["published"] if column.is_published else [])
    if column.is_rating:
        heads += ["measured", "why"]
    else:
        heads += ["published ratio"] if column.is_published else []
        heads += ["measured", INTERVAL, "measured ratio", INTERVAL]
    rows = []
    for line in found.lines:
        cell = line.cells[index]
        here = markdown.code(line.stack) + (f" with {markdown.code(line.layer)}" if has_layers(found) else "")
        figures = [published(cell)] if column.is_published else []
        if column.is_rating:
            figures += [shown(cell, column), markdown.plain("; ".join(cell.reasons) or cell.why or DASH)]
        else:
            figures += [published_ratio(line, cell)] if column.is_published else []
            why = f": {markdown.plain(cell.why)}" if cell.why and cell.why != NOT_MEASURED else ""
            spread = range_of(cell.measured, column.show) if cell.measured else DASH
            figures += [shown(cell, column) + why, spread, ratio(line, cell), ratio_range(line, cell) or DASH]
        rows.append([markdown.plain(where(line, found)), here, *figures])
    return markdown.table(heads, rows, left=2)


def _sentences(found: Reproduced, answer: findings.Answer) -> list[str]:
    return [markdown.sentence(said(found, sentence)) for sentence in answer.sentences]


# -------------------------------------------------------------------------------------------------- CSV

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
    """One line a row and column, in the units of the metric; nothing where nothing was measured."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(CSV_HEAD)
    for line in found.lines:
        for column, cell in zip(found.columns, line.cells, strict=True):
            words = [line.title, line.stack, line.layer, line.size, not line.added, column.title, column.metric]
            writer.writerow([csv_cell(value) for value in (*words, *_csv_figures(cell))])
    return stream.getvalue()


def _csv_figures(cell: Cell) -> Iterable[object]:
    yield from (cell.published, cell.published_ratio)
    if isinstance(cell.measured, Spread):
        yield from (cell.measured.median, cell.measured.low, cell.measured.high, cell.measured.count)
    else:
        yield from (cell.measured, None, None, None)
    yield from (cell.ratio.median, cell.ratio.low, cell.ratio.high) if cell.ratio else (None, None, None)
    yield cell.why or None


FORMS = {"html": as_html, "md": as_markdown, "csv": as_csv}
