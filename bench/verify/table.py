"""The outcomes of the suite, as text for people and as a document for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from bench.figures.columns import columns
from bench.results.records import GROUPS, Outcome, Skip

# With more deployments the table of single checks, which has a column for each, is too wide to read.
MAX_COLUMNS = 12
# The words for the outcomes in a cell, the gravest first; a cell shows the gravest.
WORDS = ("FAIL", "not tried", "declared", "pass")


def as_document(outcomes: list[Outcome], skips: list[Skip], notes: Sequence[str] = ()) -> dict[str, Any]:
    """The document for `--json`.

    ok      true when something was verified and nothing failed
    layers  layer -> group -> the outcomes of its checks on all stacks, counted
    notes   such as whose rows were served, and where versions of packages clash
    """
    return {
        "ok": bool(outcomes) and all(item.ok for item in outcomes),
        "layers": {
            layer: {group: _cell(found) for group, found in groups.items()}
            for layer, groups in _by_layer(outcomes).items()
        },
        "outcomes": [asdict(item) for item in outcomes],
        "notes": list(notes),
        "skips": [{"stack": skip.stack, "layer": skip.layer, "reason": skip.reason} for skip in skips],
    }


def as_text(outcomes: list[Outcome], skips: list[Skip]) -> str:
    """The deployments, layer by group, check by deployment, and the reason for each word that is not `pass`."""
    deployments = list(dict.fromkeys((item.stack, item.layer) for item in outcomes))
    lines = ["DEPLOYMENTS"]
    for number, (stack, layer) in enumerate(deployments, 1):
        found = [item for item in outcomes if (item.stack, item.layer) == (stack, layer)]
        lines.append(f"  {number:>2}  {stack} with layer {layer}: {count(found)}")
    lines += ["", *_layers(outcomes)]
    if len(deployments) <= MAX_COLUMNS:
        lines += ["", *_checks(outcomes, deployments)]
    lines += _figures(outcomes)
    for item in outcomes:
        if not item.ok:
            lines += ["", f"FAIL {item.stack} with layer {item.layer}, {item.check}"]
            lines += [f"  expected  {item.expected}", f"  got       {item.got}"]
    lines += _reasons("DECLARED", [(item, item.declared) for item in outcomes if item.declared])
    lines += _reasons("NOT TRIED", [(item, item.not_tried) for item in outcomes if item.word == "not tried"])
    if skips:
        lines += ["", "SKIPPED", *(f"  {line}" for line in by_reason(skips))]
    return "\n".join(lines)


def count(found: Iterable[Outcome]) -> str:
    """The outcomes of a deployment's checks, counted, in words."""
    words = [item.word for item in found]
    failed, declared, left = (words.count(word) for word in ("FAIL", "declared", "not tried"))
    if failed:
        return f"{failed} of {len(words)} checks failed"
    text = f"{len(words) - left - declared} checks passed"
    text += f", {declared} declared" if declared else ""
    return text + (f", {left} not tried" if left else "")


def by_reason(skips: Iterable[Skip]) -> list[str]:
    """Each reason once, after the stacks and the layer for which it holds."""
    where: dict[tuple[str, str], list[str]] = {}
    for skip in skips:
        where.setdefault((skip.layer, skip.reason), []).append(skip.stack)
    return [f"{', '.join(stacks)} with layer {layer}: {reason}" for (layer, reason), stacks in where.items()]


def _by_layer(outcomes: list[Outcome]) -> dict[str, dict[str, list[Outcome]]]:
    """Layer -> group -> its outcomes on all stacks."""
    found: dict[str, dict[str, list[Outcome]]] = {}
    for item in outcomes:
        found.setdefault(item.layer, {}).setdefault(item.group, []).append(item)
    return found


def _cell(found: list[Outcome]) -> dict[str, Any]:
    words = [item.word for item in found]
    counts = {word.lower().replace(" ", "_"): words.count(word) for word in WORDS}
    return {"result": _word(found).lower(), "checks": len(words), **counts}


def _word(found: list[Outcome]) -> str:
    words = {item.word for item in found}
    return next(word for word in WORDS if word in words)


def _layers(outcomes: list[Outcome]) -> list[str]:
    """A row for each layer, a column for each group. A word for only some of the checks has their number."""
    layers = _by_layer(outcomes)
    groups = [group for group in GROUPS if any(group in found for found in layers.values())]
    rows = [["LAYER", *groups]]
    rows += [[layer, *(_shown(found.get(group)) for group in groups)] for layer, found in layers.items()]
    return columns(rows)


def _shown(found: list[Outcome] | None) -> str:
    if not found:
        return "-"
    word = _word(found)
    having = sum(item.word == word for item in found)
    return word if having == len(found) else f"{word} {having}/{len(found)}"


def _checks(outcomes: list[Outcome], deployments: list[tuple[str, str]]) -> list[str]:
    """A row for each check, a column for each deployment."""
    cells = {(item.stack, item.layer, item.check): item.word for item in outcomes}
    names = list(dict.fromkeys(item.check for item in outcomes))
    rows = [["CHECK", *(str(number) for number in range(1, len(deployments) + 1))]]
    return columns(rows + [[name, *(cells.get((*key, name), "-") for key in deployments)] for name in names])


def _figures(outcomes: list[Outcome]) -> list[str]:
    if not any(item.figures for item in outcomes):
        return []
    lines = ["", "FIGURES"]
    for item in outcomes:
        if item.figures:
            figures = ", ".join(f"{name} {_number(value)}" for name, value in item.figures.items())
            lines.append(f"  {item.stack} with layer {item.layer}, {item.check}: {figures}")
    return lines


def _number(value: float | int | None) -> str:
    if value is None:
        return "not measured"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"


def _reasons(title: str, found: list[tuple[Outcome, str | None]]) -> list[str]:
    """Each reason once, after the stacks, the layer and the checks for which it holds."""
    if not found:
        return []
    where: dict[tuple[str, str], dict[str, dict[str, None]]] = {}
    for item, reason in found:
        stacks = where.setdefault((item.layer, reason or ""), {}).setdefault(item.check, {})
        stacks[item.stack] = None
    lines = ["", title]
    for (layer, reason), checks in where.items():
        every = list(dict.fromkeys(stack for names in checks.values() for stack in names))
        lines.append(f"  {', '.join(every)} with layer {layer}, {', '.join(checks)}: {reason}")
    return lines
