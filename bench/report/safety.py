"""What the checks of verify found, by layer and group of checks. Pure.

A cell adds up all stacks that were checked with a layer and shows the worst outcome. A check that was not tried is
listed as such and never counts as passed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bench.figures.words import plural
from bench.report.model import Report
from bench.report.numbers import number
from bench.results.records import GROUPS, NO_LAYER, Outcome

PASS, DECLARED, FAIL, NOT_TRIED = "pass", "declared", "fail", "not tried"
OTHERS = {DECLARED: "are declared as not supported", NOT_TRIED: "were not tried"}
WORST_FIRST = (FAIL, DECLARED, PASS, NOT_TRIED)
SIGNS = {PASS: "\N{CHECK MARK}", DECLARED: "!", FAIL: "\N{BALLOT X}", NOT_TRIED: "\N{EN DASH}"}


@dataclass(frozen=True)
class GroupOutcome:
    """The checks of one group with one layer, over all stacks: outcome -> how many."""

    counts: Mapping[str, int]

    @property
    def word(self) -> str:
        """The worst outcome: `fail`, `declared`, `pass`, or `not tried` when no check was made."""
        return next(word for word in WORST_FIRST if self.counts.get(word))

    @property
    def text(self) -> str:
        """`12 pass`, `1 fail, 11 pass`, `1 declared, 8 pass, 3 not tried`."""
        return ", ".join(f"{self.counts[word]:,} {word}" for word in WORST_FIRST if self.counts.get(word))


@dataclass(frozen=True)
class CheckRemark:
    """Why checks were declared or not tried: one reason, with every check and stack it applies to."""

    layer: str
    reason: str
    checks: tuple[str, ...]
    stacks: tuple[str, ...]


@dataclass(frozen=True)
class Safety:
    """The safety table and what explains its words."""

    layers: tuple[str, ...]
    groups: tuple[str, ...]
    cells: Mapping[tuple[str, str], GroupOutcome]
    declared: tuple[CheckRemark, ...]
    not_tried: tuple[CheckRemark, ...]
    figures: tuple[tuple[str, str, str, str], ...]  # layer, check, figure, values by stack

    @property
    def sentence(self) -> str:
        """How all checks went together."""
        counts = sum((Counter(cell.counts) for cell in self.cells.values()), Counter[str]())
        if not counts:
            return "This run has no checks."
        failed = f"{counts[FAIL]:,} failed" if counts[FAIL] else "none failed"
        others = [f"{counts[each]:,} {text}" for each, text in OTHERS.items() if counts[each]]
        return f"{counts[PASS]:,} checks passed, {failed}" + "".join(f", {text}" for text in others) + "."

    def cell(self, layer: str, group: str) -> GroupOutcome | None:
        """None when the group was not run, as all but `behaviour` without a layer."""
        return self.cells.get((layer, group))


def word(check: Outcome) -> str:
    """The outcome of a check: `pass`, `declared`, `fail` or `not tried`."""
    return check.word.lower()


def safety(report: Report) -> Safety:
    """The safety table of a run."""
    checks = report.run.checks
    found = dict.fromkeys(check.layer for check in checks)
    layers = tuple(layer for layer in report.layers if layer in found)
    seen = dict.fromkeys(check.group for check in checks)
    groups = (*(group for group in GROUPS if group in seen), *(group for group in seen if group not in GROUPS))
    counts: dict[tuple[str, str], Counter[str]] = {}
    for check in checks:
        counts.setdefault((check.layer, check.group), Counter())[word(check)] += 1
    return Safety(
        layers=(*layers, *(layer for layer in found if layer not in layers)),
        groups=groups,
        cells={key: GroupOutcome(count) for key, count in counts.items()},
        declared=_remarks((check, check.declared) for check in checks if word(check) == DECLARED),
        not_tried=_remarks((check, check.not_tried) for check in checks if word(check) == NOT_TRIED),
        figures=tuple(_figures(checks)),
    )


@dataclass(frozen=True)
class CheckCount:
    """The checks of one deployment: how many passed, of how many made, and a remark about the others."""

    passed: int
    made: int
    remarks: str


def count(checks: Iterable[Outcome]) -> CheckCount:
    """How many checks of a deployment passed. Declared checks and those not tried do not count as made."""
    counts = Counter(map(word, checks))
    remarks = [f"{counts[each]:,} {each}" for each in (DECLARED, NOT_TRIED) if counts[each]]
    return CheckCount(counts[PASS], counts[PASS] + counts[FAIL], ", ".join(remarks))


def verdict(report: Report, stack: str, layer: str) -> str:
    """The checks of one deployment as the rest of a sentence, `passed all 7 checks.`; empty when it was not checked."""
    checks = report.checks.get((stack, layer))
    if not checks:
        return ""
    counts = Counter(map(word, checks))
    if counts[FAIL]:
        return f"failed {counts[FAIL]:,} of {plural(len(checks), 'check')}."
    every = "all " if counts[PASS] == len(checks) > 1 else ""
    text = f"passed {every}{plural(counts[PASS], 'check')}"
    groups = {check.group for check in checks if word(check) == PASS} - {"behaviour"}
    if groups:
        text += f", among them {plural(len(groups), 'group')} of cache safety"
    elif layer != NO_LAYER:
        text += ", but no check of cache safety was made"
    if counts[DECLARED]:
        text += f"; {counts[DECLARED]:,} declared as not supported"
    if counts[NOT_TRIED]:
        text += f"; {counts[NOT_TRIED]:,} not tried"
    return text + "."


def _remarks(found: Iterable[tuple[Outcome, str | None]]) -> tuple[CheckRemark, ...]:
    by_reason: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}
    for check, reason in found:
        checks, stacks = by_reason.setdefault((check.layer, reason or ""), ({}, {}))
        checks[check.check] = None
        stacks[check.stack] = None
    return tuple(CheckRemark(*key, tuple(checks), tuple(stacks)) for key, (checks, stacks) in by_reason.items())


def _figures(checks: Iterable[Outcome]) -> Iterable[tuple[str, str, str, str]]:
    """Each figure that a check measured, with its value on each stack."""
    by_name: dict[tuple[str, str, str], list[str]] = {}
    for check in checks:
        for name, value in (check.figures or {}).items():
            by_name.setdefault((check.layer, check.check, name), []).append(f"{check.stack} {number(value)}")
    return [(*key, ", ".join(values)) for key, values in by_name.items()]
