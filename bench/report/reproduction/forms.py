"""The report of a reproduction as HTML, Markdown and CSV: published beside measured figures, and conclusions."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from bench.figures.stats import Spread
from bench.report import conditions, findings, html, markdown
from bench.report.csv import cell as csv_cell
from bench.report.numbers import DASH, NOT_MEASURED
from bench.report.reproduction import texts
from bench.report.reproduction.side_by_side import PublishedColumn, PublishedFigure, Reproduced
from bench.report.reproduction.texts import SIGNS, ReproductionTexts

INTERVAL = "95 % interval"


def as_html(found: Reproduced) -> str:
    """The whole document."""
    first = found.reports[0]
    sentences = ReproductionTexts(found)
    return html.document(
        "reproduction.html.j2",
        title=sentences.heading,
        found=found,
        texts=sentences,
        cells=texts,
        report=first,
        plan=first.run.info.plan,
    )


# --------------------------------------------------------------------------------------------- Markdown


def as_markdown(found: Reproduced) -> str:
    """The whole document as Markdown."""
    sentences = ReproductionTexts(found)
    blocks = [
        f"# {markdown.plain(sentences.heading)}",
        markdown.sentence(sentences.opening),
        f"**{sentences.summary}**",
        " ".join(map(markdown.sentence, sentences.pick)),
        _conclusions(found),
        markdown.bullets(map(markdown.sentence, sentences.caveats)),
        "## Published and measured",
        markdown.sentence(sentences.ratios_note),
    ]
    for column in found.columns:
        blocks += [f"### {markdown.plain(column.title)}", _column(sentences, column)]
        blocks += map(markdown.sentence, sentences.without_ratio(column))
    blocks += ["## Which to pick on this machine", *_answers(sentences)]
    if sentences.gaps:
        rows = [[markdown.plain(name), outcome, markdown.code(reason)] for name, outcome, reason in sentences.gaps]
        blocks += ["## Left out", markdown.table(("what", "outcome", "reason"), rows, left=3)]
    blocks += ["## Runs", *_runs(found)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _conclusions(found: Reproduced) -> str:
    rows = [
        [
            markdown.plain(item.claim),
            f"{SIGNS[item.verdict]} {item.verdict}",
            item.bounds or DASH,
            markdown.sentence(item.sentence),
        ]
        for item in found.verdicts
    ]
    return markdown.table(("conclusion", "today", "holds for", "figures"), rows, left=4)


def _answers(sentences: ReproductionTexts) -> Iterable[str]:
    for report in sentences.found.reports:
        for answer in findings.answers(report):
            title = f"{findings.setting_title(report, answer.panel)} at {answer.panel.setting.load}"
            text = " ".join(markdown.sentence(sentence) for sentence in sentences.sentences(answer))
            yield f"**{markdown.sentence(title)}.** {text}"


def _runs(found: Reproduced) -> Iterable[str]:
    for part in found.parts:
        if part.report:
            command = markdown.code(conditions.command(part.report))
            link = f"[{markdown.plain(part.name)}]({part.name}/report.md)"
            yield f"- {link}, with all its figures: {conditions.measured(part.report)}; made by {command}"


def _column(sentences: ReproductionTexts, column: PublishedColumn) -> str:
    found = sentences.found
    heads = ["row", "here"] + (["published"] if column.is_published else [])
    if column.is_rating:
        heads += ["measured", "why"]
    else:
        heads += ["published ratio"] if column.is_published else []
        heads += ["measured", INTERVAL, "measured ratio", INTERVAL]
    index = found.columns.index(column)
    rows = []
    for row in found.rows:
        figure = row.figures[index]
        here = markdown.code(row.stack) + (f" with {markdown.code(row.layer)}" if sentences.has_layers else "")
        cells = [texts.published(figure)] if column.is_published else []
        if column.is_rating:
            cells += [texts.shown(figure, column), markdown.plain("; ".join(figure.reasons) or figure.why or DASH)]
        else:
            cells += [texts.published_ratio(row, figure)] if column.is_published else []
            why = f": {markdown.plain(figure.why)}" if figure.why and figure.why != NOT_MEASURED else ""
            cells += [texts.shown(figure, column) + why, texts.interval(figure, column)]
            cells += [texts.ratio(row, figure), texts.ratio_range(row, figure) or DASH]
        rows.append([markdown.plain(sentences.where(row)), here, *cells])
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
    """One line a row and column, in the units of the metric; empty where nothing was measured."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(CSV_HEAD)
    for row in found.rows:
        for column, figure in zip(found.columns, row.figures, strict=True):
            names = [row.title, row.stack, row.layer, row.size, not row.added, column.title, column.metric]
            writer.writerow([csv_cell(value) for value in (*names, *_csv_figures(figure))])
    return stream.getvalue()


def _csv_figures(figure: PublishedFigure) -> Iterable[object]:
    yield from (figure.published, figure.published_ratio)
    if isinstance(figure.measured, Spread):
        yield from (figure.measured.median, figure.measured.low, figure.measured.high, figure.measured.count)
    else:
        yield from (figure.measured, None, None, None)
    yield from (figure.ratio.median, figure.ratio.low, figure.ratio.high) if figure.ratio else (None, None, None)
    yield figure.why or None


FORMS = {"html": as_html, "md": as_markdown, "csv": as_csv}
