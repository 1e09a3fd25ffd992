"""Outcomes for people: a line each as it comes, and a table of 80 columns at the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.figures.columns import columns, paragraph
from bench.results.faults import FaultOutcome

WIDTH = 80
WORDS = ("FAIL", "VOIDED", "declared", "pass", "skipped")


def line(outcome: FaultOutcome) -> str:
    """One outcome in words."""
    where = f"{outcome.stack} with layer {outcome.layer}, {outcome.fault}"
    words = [outcome.word]
    if outcome.failed is not None:
        words.append(
            f"{outcome.failed} of {(outcome.requests_new or 0) + (outcome.requests_kept or 0)} requests failed"
        )
        words.append(f"gap {_seconds(outcome.longest_gap_s)}, recovery {_seconds(outcome.recovery_s)}")
        words.append(f"operator: {outcome.operator}")
    if outcome.reason:
        words.append(outcome.reason)
    return f"{where}: {'; '.join(words)}"


def as_text(outcomes: Sequence[FaultOutcome]) -> str:
    """A table for each fault that was made, a row for each deployment, and the reasons below."""
    lines: list[str] = []
    for name in dict.fromkeys(item.fault for item in outcomes):
        its = [item for item in outcomes if item.fault == name]
        made = [item for item in its if item.status != "skipped"]
        if made:
            lines += ["", name.upper().replace("-", " "), *_table(made)]
    lines += _reasons("FAILED", [item for item in outcomes if item.word == "FAIL"])
    lines += _reasons("VOIDED", [item for item in outcomes if item.word == "VOIDED"])
    lines += _reasons("DECLARED", [item for item in outcomes if item.word == "declared"])
    lines += _reasons("SKIPPED", [item for item in outcomes if item.word == "skipped"])
    return "\n".join([*lines, "", count(outcomes)]).lstrip("\n")


def count(outcomes: Iterable[FaultOutcome]) -> str:
    """How many outcomes there are of each word."""
    words = [item.word for item in outcomes]
    return ", ".join(f"{words.count(word)} {word}" for word in WORDS if word in words) or "nothing was made"


def _table(made: Sequence[FaultOutcome]) -> list[str]:
    rows = [["DEPLOYMENT", "", "FAILED", "GAP", "BACK", "WRONG", "STALE", "MIXED", "OPERATOR"]]
    rows += [_row(item) for item in made]
    return columns(rows, width=WIDTH)


def _row(item: FaultOutcome) -> list[str]:
    total = (item.requests_new or 0) + (item.requests_kept or 0)
    return [
        item.stack if item.layer == "none" else f"{item.stack} {item.layer}",
        item.word,
        "-" if item.failed is None else f"{item.failed}/{total}",
        _seconds(item.longest_gap_s),
        "-" if item.failed is None else _seconds(item.recovery_s),
        _number(item.wrong),
        _number(item.stale),
        "-" if item.mixed_s is None else _seconds(item.mixed_s),
        (item.operator or "-").partition(",")[0],
    ]


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.1f}s"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _reasons(title: str, found: Sequence[FaultOutcome]) -> list[str]:
    """Each reason once, after the deployments and faults for which it holds."""
    where: dict[str, dict[str, list[str]]] = {}
    for item in found:
        of_fault = where.setdefault(item.declared or item.reason or "", {}).setdefault(item.fault, [])
        of_fault.append(item.stack if item.layer == "none" else f"{item.stack} {item.layer}")
    lines = ["", title] if where else []
    for reason, faults in where.items():
        names = "; ".join(f"{fault}: {', '.join(dict.fromkeys(stacks))}" for fault, stacks in faults.items())
        lines += paragraph(f"{names}: {reason}", WIDTH, "  ", "  ")
    return lines
