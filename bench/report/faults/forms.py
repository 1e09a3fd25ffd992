"""The report on faults as HTML, Markdown and CSV."""

from __future__ import annotations

from dataclasses import fields

from bench.report import csv, html, markdown
from bench.report.faults import model, texts
from bench.report.faults.model import Faults
from bench.results.faults import GROUPS, FaultOutcome


def as_html(found: Faults) -> str:
    """The whole document."""
    return html.document("faults.html.j2", _context(found))


def as_markdown(found: Faults) -> str:
    """The whole document as Markdown."""
    return markdown.document("faults.md.j2", **_context(found))


def as_csv(found: Faults) -> str:
    """One line an outcome, voided and repeated ones too; empty cells where nothing was measured."""
    names = [item.name for item in fields(FaultOutcome)]
    rows = [[getattr(outcome, name) for name in names] for outcome in found.run.outcomes]
    return csv.table([names, *rows])


def _context(found: Faults) -> dict[str, object]:
    return {"title": texts.title(found), "found": found, "texts": texts, "model": model, "groups": GROUPS}


FORMS = {"html": as_html, "md": as_markdown, "csv": as_csv}
