"""The report on faults as HTML."""

from __future__ import annotations

from bench.report import html
from bench.report.faults import model, texts
from bench.report.faults.model import Faults
from bench.results.faults import GROUPS


def render(found: Faults) -> str:
    """The whole document."""
    context = {"title": texts.title(found), "found": found, "texts": texts, "model": model, "groups": GROUPS}
    return html.document("faults.html.j2", context)
