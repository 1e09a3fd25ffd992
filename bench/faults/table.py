"""Outcomes for people: a line each as it comes, and a table of 80 columns at the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.records.faults import FaultOutcome
from bench.records.records import NO_LAYER
from bench.stats.columns import columns, paragraph

WIDTH = 80
LEGEND = (
    "FAILED: requests without a right answer. GAP: longest time without a page. BACK:",
    "from the end of the cause to right answers only. BAD: wrong or stale answers.",
    "MIXED: old and new version side by side. Times in seconds.",
)
COLUMNS = ("", "FAILED", "GAP", "BACK", "BAD", "MIXED", "OPERATOR")
REASONS = {"FAILED": "FAIL", "VOIDED": "VOIDED", "DECLARED": "declared", "SKIPPED": "skipped"}
WORDS = ("FAIL", "VOIDED", "declared", "pass", "skipped")


def line(outcome: FaultOutcome) -> str:
    """One outcome in words."""
    words = [outcome.word]
    if outcome.failed is not None:
        asked = (outcome.requests_new or 0) + (outcome.requests_kept or 0)
        back = _seconds(outcome.recovery_s) + (" s" if outcome.recovery_s is not None else "")
        words.append(f"{outcome.failed} of {asked} requests failed")
        words.append(f"gap {_seconds(outcome.longest_gap_s)} s, recovery {back}; operator: {outcome.operator}")
    if seed := (outcome.figures or {}).get("seed"):
        words.append(f"seed {seed}")
    if outcome.reason:
        words.append(outcome.reason)
    return f"{outcome.stack} with layer {outcome.layer}, {outcome.fault}: {'; '.join(words)}"


def as_text(outcomes: Sequence[FaultOutcome]) -> str:
    """The figures and, below, the reasons: a table for each fault, or one of all faults where there is one case."""
    made = [item for item in outcomes if item.status != "skipped"]
    several = len({(item.stack, item.layer) for item in made}) > 1
    tables: dict[str, list[list[str]]] = {}
    for item in made:
        fault = item.fault.upper().replace("-", " ") + ("" if item.layer == NO_LAYER else f", layer {item.layer}")
        title, first = (fault, item.stack) if several else (_case(item), item.fault)
        tables.setdefault(title, []).append([first, *_figures(item)])
    lines: list[str] = []
    for title, rows in tables.items():
        lines += ["", title, *columns([["STACK" if several else "FAULT", *COLUMNS], *rows])]
    lines += ["", *LEGEND] if made else []
    for title, word in REASONS.items():
        lines += _reasons(title, [item for item in outcomes if item.word == word])
    return "\n".join([*lines, "", count(outcomes)]).lstrip("\n")


def count(outcomes: Iterable[FaultOutcome]) -> str:
    """How many outcomes there are of each word."""
    words = [item.word for item in outcomes]
    return ", ".join(f"{words.count(word)} {word}" for word in WORDS if word in words) or "nothing was made"


def not_made(named: Sequence[str], outcomes: Sequence[FaultOutcome]) -> list[str]:
    """For each of the faults `named` that was skipped on every deployment: its name and the reasons."""
    lines = []
    for name in named:
        its = [item for item in outcomes if item.fault == name]
        if its and all(item.status == "skipped" for item in its):
            lines.append(f"{name} was made nowhere: {'; '.join(dict.fromkeys(item.reason or '' for item in its))}")
    return lines


def _case(item: FaultOutcome) -> str:
    return item.stack if item.layer == NO_LAYER else f"{item.stack} {item.layer}"


def _figures(item: FaultOutcome) -> list[str]:
    if item.failed is None:
        return [item.word, *"-----", item.operator or "-"]
    return [
        item.word,
        str(item.failed),
        _seconds(item.longest_gap_s),
        _seconds(item.recovery_s),
        str((item.wrong or 0) + (item.stale or 0)),
        "-" if item.mixed_s is None else _seconds(item.mixed_s),
        (item.operator or "-").partition(",")[0],
    ]


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.1f}"


def _reasons(title: str, found: Sequence[FaultOutcome]) -> list[str]:
    """Each reason once, after the deployments and faults for which it holds."""
    where: dict[str, dict[str, list[str]]] = {}
    for item in found:
        of_fault = where.setdefault(item.declared or item.reason or "", {}).setdefault(item.fault, [])
        of_fault.append(_case(item))
    lines = ["", title] if where else []
    for reason, faults in where.items():
        names = "; ".join(f"{fault}: {', '.join(dict.fromkeys(stacks))}" for fault, stacks in faults.items())
        lines += paragraph(f"{names}: {reason}", WIDTH, "  ", "  ")
    return lines
