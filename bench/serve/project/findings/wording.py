"""Pages in a sentence, each with the line that is the cause."""

from __future__ import annotations

from collections.abc import Iterable

from bench.serve.project.inspection import InspectedPage

# So many paths of one cause are named.
MAX_PATHS = 4


def first_line(pages: Iterable[InspectedPage], *names: str) -> str:
    """The first cause of these names that is a line."""
    for page in pages:
        for name in names:
            if ":" in page.causes.get(name, ""):
                return page.causes[name]
    return ""


def listed(pages: Iterable[InspectedPage], *names: str) -> str:
    """The pages by their cause of one of these names: `/, /about/ (base.html:12) and /blog/`."""
    by_cause: dict[str, list[str]] = {}
    for page in pages:
        cause = next((page.causes[name] for name in names if name in page.causes), "")
        by_cause.setdefault(cause, []).append(page.path)
    parts: list[str] = []
    for cause, paths in by_cause.items():
        part = ", ".join(paths[:MAX_PATHS])
        if len(paths) > MAX_PATHS:
            part += f" and {len(paths) - MAX_PATHS} more"
        if cause:
            part += f" ({cause})"
        parts.append(part)
    return " and ".join(parts)
