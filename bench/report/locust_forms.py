"""The report of a run that has nothing but what Locust counted, as HTML, Markdown and CSV."""

from __future__ import annotations

from dataclasses import fields

from bench.report import csv, html, markdown, redact
from bench.results.folder import Run
from bench.results.locust import LocustRequests


def as_html(run: Run) -> str:
    """The whole document."""
    return html.document("locust.html.j2", _context(run))


def as_markdown(run: Run) -> str:
    """The whole document as Markdown."""
    return markdown.document("locust.md.j2", **_context(run))


def as_csv(run: Run) -> str:
    """One line for the requests of one name."""
    names = [item.name for item in fields(LocustRequests)]
    rows = [
        [found.locustfile, *(getattr(entry, name) for name in names)]
        for found in run.locust
        for entry in found.requests
    ]
    return csv.table([["locustfile", *names], *rows])


def _context(run: Run) -> dict[str, object]:
    plan = run.info.plan
    title = f"Locust on {plan.stacks[0]} with layer {plan.layers[0]}"
    return {"title": title, "run": run, "command": redact.command(run.info.command)}


FORMS = {"html": as_html, "md": as_markdown, "csv": as_csv}
