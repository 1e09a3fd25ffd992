"""Outcomes for people: a line each as it comes, and a table of 80 columns at the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.figures.columns import columns, paragraph
from bench.results.faults import FaultOutcome
from bench.results.records import NO_LAYER

WIDTH = 80
LEGEND = (
    "FAILED: requests without a right answer. GAP: longest time without a page. BACK:",
    "from the end of the cause to right answers only. BAD: wrong or stale answers.",
    "MIXED: old and new version side by side. Times in seconds.",
)
REASONS = {"FAILED": "FAIL", "VOIDED": "VOIDED", "DECLARED": "declared", "SKIPPED": "skipped"}
WORDS = ("FAIL", "VOIDED", "declared", "pass", "skipped")


def line(outcome: FaultOutcome) -> str:
    """One outcome in words."""
    where = f"{outcome.stack} with layer {outcome.layer}, {outcome.fault}"
    words = [outcome.word]
    if outcome.failed is not None:
        words.append(
            f"{outcome.failed} of {(outcome.requests_new or 0) + (outcome.requests_kept or 0)} requests failed"
        )
        words.append(f"gap {_seconds(outcome.longest_gap_s)} s, recovery {_in_words(outcome.recovery_s)}")
        words.append(f"operator: {outcome.operator}")
    if "seed" in (outcome.figures or {}):
        words.append(f"seed {(outcome.figures or {})['seed']}")
    if outcome.reason:
        words.append(outcome.reason)
    return f"{where}: {'; '.join(words)}"


def as_text(outcomes: Sequence[FaultOutcome]) -> str:
    """A table for each fault and layer that was made, a row for each stack, and the reasons below."""
    lines: list[str] = []
    made = [item for item in outcomes if item.status != "skipped"]
    for fault, layer in dict.fromkeys((item.fault, item.layer) for item in made):
        heading = fault.upper().replace("-", " ") + ("" if layer == NO_LAYER else f", layer {layer}")
        lines += ["", heading, *_table([item for item in made if (item.fault, item.layer) == (fault, layer)])]
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


def _table(made: Sequence[FaultOutcome]) -> list[str]:
    return columns([["STACK", "", "FAILED", "GAP", "BACK", "BAD", "MIXED", "OPERATOR"], *map(_row, made)])


def _row(item: FaultOutcome) -> list[str]:
    seen = item.failed is not None
    return [
        item.stack,
        item.word,
        str(item.failed) if seen else "-",
        _seconds(item.longest_gap_s) if seen else "-",
        _seconds(item.recovery_s) if seen else "-",
        str((item.wrong or 0) + (item.stale or 0)) if seen else "-",
        "-" if item.mixed_s is None else _seconds(item.mixed_s),
        (item.operator or "-").partition(",")[0],
    ]


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.1f}"


def _in_words(recovery_s: float | None) -> str:
    return "never" if recovery_s is None else f"{recovery_s:.1f} s"


def _reasons(title: str, found: Sequence[FaultOutcome]) -> list[str]:
    """Each reason once, after the deployments and faults for which it holds."""
    where: dict[str, dict[str, list[str]]] = {}
    for item in found:
        of_fault = where.setdefault(item.declared or item.reason or "", {}).setdefault(item.fault, [])
        of_fault.append(item.stack if item.layer == NO_LAYER else f"{item.stack} {item.layer}")
    lines = ["", title] if where else []
    for reason, faults in where.items():
        names = "; ".join(f"{fault}: {', '.join(dict.fromkeys(stacks))}" for fault, stacks in faults.items())
        lines += paragraph(f"{names}: {reason}", WIDTH, "  ", "  ")
    return lines
