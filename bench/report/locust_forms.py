"""The report of a run that has nothing but what Locust counted, as HTML."""

from __future__ import annotations

from bench.report import html, redact
from bench.results.folder import Run


def as_html(run: Run) -> str:
    """The whole document."""
    plan = run.info.plan
    title = f"Locust on {plan.stacks[0]} with layer {plan.layers[0]}"
    return html.document("locust.html.j2", {"title": title, "run": run, "command": redact.command(run.info.command)})
