"""What has no figures, grouped by reason: failed and voided trials, and what cannot run here. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench.figures.words import joined, plural
from bench.report.model import SKIPPED, CaseRow, Report
from bench.results.trials import Trial, voided_by

FAILED, VOIDED = "failed", "voided"


@dataclass(frozen=True)
class GapCase:
    """A case at a level with its trials that have no figures for one reason."""

    row: CaseRow
    trials: tuple[Trial, ...]


@dataclass(frozen=True)
class Gap:
    """Trials of any case without figures for one reason.

    outcome  FAILED or VOIDED
    reason   the guards that voided them, or why they failed
    example  what the guards found in the first of them; empty for failures
    """

    outcome: str
    reason: str
    example: str
    cases: tuple[GapCase, ...]

    @property
    def count(self) -> int:
        """How many trials these are."""
        return sum(len(case.trials) for case in self.cases)


def gaps(report: Report) -> list[Gap]:
    """Failed trials by their reason, then voided ones by the guards that voided them; the most trials first."""
    failed = _grouped(report, FAILED, lambda row: row.failed, lambda trial: (trial.reason or "", ""))
    voided = _grouped(report, VOIDED, lambda row: row.voided, _by_guards)
    return failed + voided


def _by_guards(trial: Trial) -> tuple[str, str]:
    names = dict.fromkeys(name for name, _ in voided_by(trial))
    return (", ".join(names), trial.reason or "") if names else (trial.reason or "", "")


def _grouped(
    report: Report,
    outcome: str,
    trials_of: Callable[[CaseRow], Iterable[Trial]],
    reason_of: Callable[[Trial], tuple[str, str]],
) -> list[Gap]:
    found: dict[str, dict[CaseRow, list[Trial]]] = {}
    examples: dict[str, str] = {}
    for row in report.rows:
        for trial in trials_of(row):
            reason, example = reason_of(trial)
            found.setdefault(reason, {}).setdefault(row, []).append(trial)
            examples.setdefault(reason, example)
    groups = [
        Gap(outcome, reason, examples[reason], tuple(GapCase(row, tuple(trials)) for row, trials in rows.items()))
        for reason, rows in found.items()
    ]
    return sorted(groups, key=lambda group: -group.count)


def skipped(report: Report) -> list[tuple[str, list[str]]]:
    """Each reason why something cannot run here, with the deployments that it keeps from running."""
    found: dict[str, dict[str, None]] = {}
    for skip in report.run.info.skips:
        parts = [skip.workload, f"size {skip.size}" if skip.size else None]
        name = ", ".join([f"{skip.stack} with {skip.layer}", *filter(None, parts)])
        found.setdefault(skip.reason, {})[name] = None
    return [(reason, list(names)) for reason, names in found.items()]


def sentence(report: Report) -> str:
    """How much was left out, and why most of it."""
    found, skips = gaps(report), report.counts()[SKIPPED]
    parts = []
    for outcome in (FAILED, VOIDED):
        groups = [gap for gap in found if gap.outcome == outcome]
        if groups:
            count = plural(sum(gap.count for gap in groups), "trial")
            by = f" ({joined([f'{gap.count:,} by {gap.reason}' for gap in groups[:3]])})" if outcome == VOIDED else ""
            parts.append(f"{count} {outcome}{by}")
    if skips:
        parts.append(f"{plural(skips, 'case')} skipped, as {'it' if skips == 1 else 'they'} cannot run here")
    return f"{'; '.join(parts)}." if parts else "Nothing was skipped, failed or voided."
