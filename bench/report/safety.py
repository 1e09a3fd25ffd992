"""What the checks of verify found, layer by group of checks: the safety table. Pure.

A cell adds up all stacks that were checked under a layer. Its word is the gravest of its checks'; what was not tried is
said as such and never counted as passed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bench.report.model import BASELINE, Report
from bench.report.numbers import number
from bench.results.records import Outcome

PASS, DECLARED, FAIL, NOT_TRIED = "pass", "declared", "fail", "not tried"
GRAVEST = (FAIL, DECLARED, PASS, NOT_TRIED)
SIGNS = {PASS: "\N{CHECK MARK}", DECLARED: "!", FAIL: "\N{BALLOT X}", NOT_TRIED: "\N{EN DASH}"}

# Group of checks -> what passing it says (the groups of bench.verify).
GROUPS = {
    "behaviour": "the site gives its right answers",
    "caching": "it keeps what may be kept and nothing else",
    "privacy": "nobody sees another's page",
    "web": "cookies, query strings and hosts made up by clients neither split nor flood it",
    "freshness": "a write shows soon, and what is old does not come back",
    "stampede": "many at once cost few renderings",
    "bytes": "a kept answer is the rendered one, byte for byte and header by header",
    "names": "odd URLs break nothing, read no other file and share no entry",
    "files": "no reader sees half a page, whatever dies meanwhile",
    "service": "pages keep coming when the caching service stops, and hits return with it",
    "advisories": "published faults of cache middleware and Vary stay mended",
}


@dataclass(frozen=True)
class Cell:
    """The checks of one group under one layer, over all stacks."""

    counts: Mapping[str, int]

    @property
    def word(self) -> str:
        """`fail`, `declared`, `pass`, or `not tried` when none was made."""
        return next(word for word in GRAVEST if self.counts.get(word))

    @property
    def text(self) -> str:
        """`12 pass`, `1 fail, 11 pass`, `1 declared, 8 pass, 3 not tried`."""
        return ", ".join(f"{self.counts[word]:,} {word}" for word in GRAVEST if self.counts.get(word))


@dataclass(frozen=True)
class Remark:
    """Something said of checks, once, with every check and stack it is said of."""

    layer: str
    reason: str
    checks: tuple[str, ...]
    stacks: tuple[str, ...]


@dataclass(frozen=True)
class Safety:
    """The table and what stands behind its words."""

    layers: tuple[str, ...]
    groups: tuple[str, ...]
    cells: Mapping[tuple[str, str], Cell]
    declared: tuple[Remark, ...]
    not_tried: tuple[Remark, ...]
    figures: tuple[tuple[str, str, str, str], ...]  # layer, check, figure, by stack

    def cell(self, layer: str, group: str) -> Cell | None:
        """None where the group was not run, as all but `behaviour` are without a layer."""
        return self.cells.get((layer, group))


def word(check: Outcome) -> str:
    """What a check came to, in one word."""
    if not check.ok:
        return FAIL
    if check.declared:
        return DECLARED
    return NOT_TRIED if check.not_tried else PASS


def safety(report: Report) -> Safety:
    """The safety table of a run."""
    checks = report.run.checks
    found = dict.fromkeys(check.layer for check in checks)
    layers = tuple(layer for layer in report.layers if layer in found)
    seen = dict.fromkeys(check.group for check in checks)
    groups = (*(group for group in GROUPS if group in seen), *(group for group in seen if group not in GROUPS))
    counts: dict[tuple[str, str], Counter] = {}
    for check in checks:
        counts.setdefault((check.layer, check.group), Counter())[word(check)] += 1
    return Safety(
        layers=(*layers, *(layer for layer in found if layer not in layers)),
        groups=groups,
        cells={key: Cell(count) for key, count in counts.items()},
        declared=_remarks((check, check.declared) for check in checks if word(check) == DECLARED),
        not_tried=_remarks((check, check.not_tried) for check in checks if word(check) == NOT_TRIED),
        figures=tuple(_figures(checks)),
    )


@dataclass(frozen=True)
class Count:
    """The checks of one deployment: right ones, of those made, and what else is to be said."""

    right: int
    made: int
    remarks: str


def count(checks: Iterable[Outcome]) -> Count:
    """How many checks of a deployment were right; what is declared or was not tried was not made and does not count."""
    counts = Counter(map(word, checks))
    remarks = [f"{counts[each]:,} {each}" for each in (DECLARED, NOT_TRIED) if counts[each]]
    return Count(counts[PASS], counts[PASS] + counts[FAIL], ", ".join(remarks))


def told(report: Report, stack: str, layer: str) -> str:
    """What the checks say of one deployment, in a sentence; empty when it was not checked."""
    checks = report.checks.get((stack, layer))
    if not checks:
        return ""
    count = Counter(map(word, checks))
    if count[FAIL]:
        return f"{count[FAIL]:,} of its {len(checks):,} checks failed."
    all_of = "all of its " if count[PASS] == len(checks) > 1 else ""
    text = f"It passed {all_of}{count[PASS]:,} check{'' if count[PASS] == 1 else 's'}"
    layered = {check.group for check in checks if word(check) == PASS} - {"behaviour"}
    if layered:
        text += f" ({len(layered)} groups of cache safety among them)"
    elif layer != BASELINE:
        text += ", none of them of cache safety"
    if count[DECLARED]:
        text += f"; {count[DECLARED]:,} more declared, with a reason"
    if count[NOT_TRIED]:
        text += f"; {count[NOT_TRIED]:,} more not tried"
    return text + "."


def _remarks(found: Iterable[tuple[Outcome, str | None]]) -> tuple[Remark, ...]:
    gathered: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}
    for check, reason in found:
        checks, stacks = gathered.setdefault((check.layer, reason or ""), ({}, {}))
        checks[check.check] = None
        stacks[check.stack] = None
    return tuple(Remark(*key, tuple(checks), tuple(stacks)) for key, (checks, stacks) in gathered.items())


def _figures(checks: Iterable[Outcome]) -> Iterable[tuple[str, str, str, str]]:
    """Each figure of a check under a layer, with its value on each stack."""
    gathered: dict[tuple[str, str, str], list[str]] = {}
    for check in checks:
        for name, value in (check.figures or {}).items():
            gathered.setdefault((check.layer, check.check, name), []).append(f"{check.stack} {number(value)}")
    return [(*key, ", ".join(values)) for key, values in gathered.items()]
