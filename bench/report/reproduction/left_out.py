"""What has no figure in a reproduction: each reason once, with the parts, deployments or trials it applies to. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from bench.figures.words import joined, plural
from bench.report import gaps
from bench.report.gaps import GapCase
from bench.report.model import Report
from bench.report.reproduction.side_by_side import Reproduced
from bench.results.records import NO_LAYER

Name = Callable[[str, str], str]  # a stack and a layer -> how the reproduction names them


def left_out(found: Reproduced, name: Name) -> Iterator[tuple[str, str, str]]:
    """What, its outcome and the reason."""
    for part in found.parts:
        if part.reason:
            yield f"part {part.name}", "cannot run here", part.reason
        if part.report:
            yield from _of_run(part.report, name)


def _of_run(report: Report, name: Name) -> Iterator[tuple[str, str, str]]:
    for reason, deployments in gaps.skipped(report):
        bare = name("", NO_LAYER) == ""
        names = [each.removesuffix(f" with {NO_LAYER}") if bare else each for each in deployments]
        yield joined(names), "skipped", reason
    for gap in gaps.gaps(report):
        reason = f"{gap.reason}, such as {gap.example}" if gap.example not in ("", gap.reason) else gap.reason
        yield f"{plural(gap.count, 'trial')} of {joined(list(_names(gap.cases, name)))}", gap.outcome, reason


def _names(cases: Iterable[GapCase], name: Name) -> Iterator[str]:
    for case in cases:
        setting = case.row.setting
        size = f", size {setting.size}" if setting.is_limited else ""
        rounds = joined([str(trial.round) for trial in case.trials])
        yield f"{name(case.row.stack, case.row.layer)} ({setting.workload}{size}, {setting.load}, round {rounds})"
