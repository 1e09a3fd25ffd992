"""Stability ratings of a run's cases, over all their levels. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bench.report.model import Report

FORMULA = (
    "Errors, spread between rounds, growth of memory, processes killed and replaced, and whether the stack came back."
)


@dataclass(frozen=True)
class Rated:
    """One case and its rating."""

    stack: str
    layer: str
    where: str
    rating: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Stability:
    """What the formula is, and every case's rating."""

    formula: str
    rows: tuple[Rated, ...]


def rated(report: Report) -> Stability:
    """The ratings of a run."""
    return Stability(FORMULA, ())
