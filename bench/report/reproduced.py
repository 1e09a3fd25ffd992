"""The report of a reproduction in every form: published beside measured, and which conclusions hold here."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from bench.report import answers, claims, drawings, glossary, html, markdown, numbers
from bench.report.claims import HOLDS, NOT
from bench.report.csvfile import cell as csv_cell
from bench.report.numbers import DASH, NOT_MEASURED, TIMES, as_published, range_of, times
from bench.report.sidebyside import Cell, Column, Line, Reproduced
from bench.stats import Spread

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
    seen = {note: None for report in found.reports for note in answers.caveats(report)}
    return notes + [note for note in seen if note not in notes]


def machine(found: Reproduced) -> list[tuple[str, str]]:
    """Facts about the machine, which all parts share; load and database are each part's own."""
    facts = answers.machine(found.reports[0])
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
            said.append((f"{skip.stack} with {skip.layer}", "skipped", skip.reason))
        for word, failures in (("failed", part.report.failures), ("voided", part.report.voided)):
            for failure in failures:
                rounds = ", ".join(map(str, failure.rounds))
                setting = failure.setting
                name = f"{failure.stack} with {failure.layer}, {setting.workload}, {setting.load}"
                said.append((name, f"{word} in round {rounds}", failure.reason))
    return said


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
    """The measured ratio to the baseline, with its range."""
    if line.baseline:
        return "1" if cell.measured else DASH
    if cell.ratio is None:
        return DASH
    spread = "" if cell.ratio.count < 2 else f" ({range_of(cell.ratio)})"
    return f"{times(cell.ratio.median)}{spread}"


def published_ratio(line: Line, cell: Cell) -> str:
    """The published ratio to the baseline."""
    if line.baseline:
        return "1" if cell.published is not None else DASH
    return DASH if cell.published_ratio is None else times(cell.published_ratio)


def baselines(found: Reproduced) -> str:
    """What the ratios are against, in words."""
    names = list(dict.fromkeys(where(line, found) for line in found.lines if line.baseline))
    return numbers.joined(names)


def where(line: Line, found: Reproduced) -> str:
    """A line's title, with its size where sizes differ."""
    sizes = {other.size for other in found.lines}
    return f"{line.title} ({line.size})" if len(sizes) > 1 else line.title


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
        self.opening, self.caveats, self.baselines = opening(found), caveats(found), baselines(found)
        self.summary = claims.summary(list(found.findings))
        self.signs = SIGNS
        self.gaps = left_out(found)
        self.shown, self.published = shown, published
        self.ratio, self.published_ratio = ratio, published_ratio

    def where(self, line: Line) -> str:
        return where(line, self.found)

    def drawing(self, column: Column) -> list[drawings.View]:
        """Published and measured ratios of a column, or measured figures where nothing was published."""
        index = self.found.columns.index(column)
        return drawings.reproduced(self.found, column, index, self.where)

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
        markdown.table(
            ("conclusion", "today", "figures"),
            [
                [markdown.plain(item.claim), f"{SIGNS[item.verdict]} {item.verdict}", markdown.sentence(item.sentence)]
                for item in found.findings
            ],
            left=3,
        ),
        "\n".join(f"- {markdown.sentence(note)}" for note in caveats(found)),
        "## Published and measured",
        f"Ratios are against {markdown.plain(baselines(found))}, each on its own side.",
    ]
    for index, column in enumerate(found.columns):
        blocks += [f"### {markdown.plain(column.title)}", _markdown_table(found, column, index)]
    blocks += ["## Which to pick on this machine"]
    for report in found.reports:
        for answer in answers.answers(report):
            title = f"{answers.setting_title(report, answer.panel)} at {answer.panel.setting.load}"
            blocks.append(f"**{markdown.sentence(title)}.** " + " ".join(map(markdown.sentence, answer.sentences)))
    if gaps := left_out(found):
        rows = [[markdown.plain(name), outcome, markdown.code(reason)] for name, outcome, reason in gaps]
        blocks += ["## Left out", markdown.table(("what", "outcome", "reason"), rows, left=3)]
    blocks += ["## Runs"]
    for part in found.parts:
        if part.report:
            command = markdown.code(answers.command(part.report))
            link = f"[{markdown.plain(part.name)}]({part.name}/report.md)"
            blocks.append(f"- {link}, with all its figures: {answers.measured(part.report)}; made by {command}")
    return "\n\n".join(blocks) + "\n"


def _markdown_table(found: Reproduced, column: Column, index: int) -> str:
    heads = ["row", "here", "published", f"published {TIMES}", "measured", f"measured {TIMES}"]
    rows = []
    for line in found.lines:
        cell = line.cells[index]
        here = f"{markdown.code(line.stack)} with {markdown.code(line.layer)}"
        figures = [published(cell), published_ratio(line, cell), shown(cell, column), ratio(line, cell)]
        rows.append([markdown.plain(where(line, found)), here, *figures])
    return markdown.table(heads, rows, left=2)


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
