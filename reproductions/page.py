"""A reproduction as Markdown: conclusions, and published figures beside ours. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from bench.words import INCONCLUSIVE, MIB, NOT_MEASURED, interval_text, number, plural
from reproductions import stability
from reproductions.conclusions import HOLDS, NOT, Conclusion
from reproductions.figures import Figures
from reproductions.folder import Reproduction
from reproductions.published import Column, Publication


def summary(found: Sequence[Conclusion]) -> str:
    """`8 published conclusions: holds 5, does not hold 1, inconclusive 2, not measured 0.`"""
    published = [it for it in found if not it.claim.left_open]
    counts = (
        f"{verdict} {sum(it.verdict == verdict for it in published)}"
        for verdict in (HOLDS, NOT, INCONCLUSIVE, NOT_MEASURED)
    )
    return f"{plural(len(published), 'published conclusion')}: {', '.join(counts)}."


def lines(found: Sequence[Conclusion]) -> list[tuple[str, str]]:
    """A row for each conclusion, for the terminal: the verdict, and the claim with the measurement."""
    return [(it.verdict, f"{it.claim.claim} Here: {f'{here(it)} {it.says}'.strip()}") for it in found]


def here(it: Conclusion) -> str:
    """`2.1 (1.9 to 2.4)`; empty for a claim without a ratio."""
    if it.ratio is None:
        return ""
    return f"{number(it.ratio)} ({interval_text(it.low, it.high) if it.low else '?'})"


def page(publication: Publication, record: Reproduction, figures: Figures, found: Sequence[Conclusion]) -> str:
    """The whole page."""
    days = sorted({run.info.started_at[:10] for run in figures.runs})
    when = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "not measured yet"
    quick = ", with fewer and shorter rounds (--quick)" if record.quick else ""
    machines = {f"{run.environment.cpu_model}, {plural(run.environment.cores, 'core')}" for run in figures.runs}
    text = [
        f"## {publication.title} ({publication.year})",
        f"*{publication.question}* {publication.source}; {publication.load}.",
        f"`python -m reproductions {record.benchmark}{' --quick' if record.quick else ''}`, {when}{quick}"
        + "".join(f"; {machine}" for machine in sorted(machines))
        + f". {summary(found)}",
        "\n".join(_table(("conclusion", "verdict", "published", "here (95 % confidence)", "what"), map(_row, found))),
    ]
    columns = publication.columns
    heads = ["", *chain.from_iterable((f"{it.title}, published", "here") for it in columns)]
    rows = [[_title(row), *_figures(row, publication, figures)] for row in publication.rows]
    text += ["\n".join(_table(heads, rows))] if any(any(row[1:]) for row in rows) else []
    notes = [f"- {part.name}: {note}" for part in record.parts for note in filter(None, (part.reason, *part.notes))]
    return "\n\n".join([*text, *(["\n".join(notes)] if notes else [])]) + "\n"


def _row(it: Conclusion) -> Sequence[str]:
    claim = it.claim
    words = f"{claim.claim}{' (left open by the publication)' if claim.left_open else ''}"
    bounds = f"holds with {claim.bounds}; " if it.ratio is not None and claim.bounds else ""
    published = "" if claim.published is None else f"{claim.published:g}"
    return words, f"**{it.verdict}**", published, here(it), bounds + it.says


def _title(row: dict[str, Any]) -> str:
    size = f", {row['size']}" if row.get("size") else ""
    return f"{row['title']}{size}{' (not in the publication)' if row.get('added') else ''}"


def _figures(row: dict[str, Any], publication: Publication, figures: Figures) -> Iterable[str]:
    """Published and ours, for each column."""
    for column in publication.columns:
        published = row.get(column.key)
        yield f"{published:,}" if isinstance(published, (int, float)) else published or ""
        yield _ours(row, column, publication, figures)


def _ours(row: dict[str, Any], column: Column, publication: Publication, figures: Figures) -> str:
    own = {key: row[key] for key in ("stack", "layer", "size", "workload") if key in row}
    place = {key: value for key, value in publication.here.items() if key != "pick"} | own
    place |= {"workload": column.workload} if column.workload and "workload" not in row else {}
    place |= {"pick": column.pick} if column.pick else {}
    if column.variant:
        place["stack"] += ("," if "@" in place["stack"] else "@") + column.variant
    if column.metric == "stability":
        return stability.worst(stability.rate(figures.find(place).trials)) or ""
    median = figures.median(place, column.metric)
    return "" if median is None else number(median / MIB if column.metric.startswith("memory") else median)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterable[str]:
    for cells in (heads, ["---"] * len(heads), *rows):
        yield f"| {' | '.join(cell.replace('|', '/').replace(chr(10), ' ') for cell in cells)} |"
