"""The outcomes of the suite: text for people, a document for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from bench.printer import Printer
from bench.verify.check import Check
from bench.verify.outcome import Outcome, Skip
from bench.words import plural

# Stack name of a --target.
TARGET = "target"
# Version of the document for programs.
FORMAT = 2
# The words for the outcomes of a group, the gravest first.
WORDS = ("failed", "skipped", "known limitation", "passed")
# Group -> the harm to visitors or the site's owner if a check of the group fails.
HARM = {
    "behaviour": "visitors get a wrong response",
    "caching": "a cache gives visitors pages of others, or nothing",
    "privacy": "a visitor sees another visitor's content",
    "web": "made-up requests empty the cache, or fill it",
    "freshness": "visitors read stale pages",
    "stampede": "many visitors at once cost as many renderings",
    "bytes": "a cached page has other bytes than a rendered one",
    "names": "an odd address gets another's page, a file or an error",
    "files": "visitors read half a page",
    "advisories": "a published fault of caches is here again",
}


def show_check(printer: Printer, words: str = "") -> Callable[[int, int, Check], None]:
    """Show each check at its start, on a terminal; `words` begin the line."""

    def show(done: int, total: int, item: Check) -> None:
        printer.show(f"{words}{done} of {total} checks, {item.group}: {item.name}")

    return show


def as_document(outcomes: list[Outcome], skips: list[Skip], notes: Sequence[str] = ()) -> dict[str, Any]:
    """The document for `--json`.

    format  version of the document
    ok      true when something was verified and nothing failed
    layers  layer -> group -> counts of outcomes on all stacks
    notes   such as the source of the rows, and clashing versions of packages
    """
    layers: dict[str, dict[str, list[str]]] = {}
    for item in outcomes:
        layers.setdefault(item.layer, {}).setdefault(item.group, []).append(item.word)
    cells = {}
    for layer, groups in layers.items():
        cells[layer] = {group: _cell(words) for group, words in groups.items()}
    return {
        "format": FORMAT,
        "ok": bool(outcomes) and all(item.ok for item in outcomes),
        "layers": cells,
        "outcomes": [asdict(item) for item in outcomes],
        "notes": list(notes),
        "skips": [{"stack": skip.stack, "layer": skip.layer, "reason": skip.reason} for skip in skips],
    }


def _cell(words: list[str]) -> dict[str, Any]:
    counts = {word.replace(" ", "_"): words.count(word) for word in WORDS}
    return {"result": next(word for word in WORDS if word in words), "checks": len(words), **counts}


def as_text(outcomes: list[Outcome], skips: list[Skip]) -> str:
    """One line for each deployment, failures with their requests, and skipped checks with reasons."""
    by_deployment: dict[tuple[str, str], list[Outcome]] = {}
    for item in outcomes:
        by_deployment.setdefault(item.deployment, []).append(item)
    lines = []
    for (stack, layer), deployment_outcomes in by_deployment.items():
        lines.append(f"{stack} with layer {layer}: {count(deployment_outcomes)}")
    for item in outcomes:
        if not item.ok:
            lines += ["", f"FAIL {item.stack} with layer {item.layer}, {item.check}: {HARM.get(item.group, '')}"]
            lines += [f"  expected  {item.expected}", f"  got       {item.got}"]
            if item.request:
                if item.serve:
                    lines.append(f"  serve     {item.serve}")
                lines.append(f"  repeat    {item.request}")
    limitations = []
    for item in outcomes:
        if item.known_limitation:
            limitations.append((item.layer, item.known_limitation, item.stack, item.check))
    sections = {
        "KNOWN LIMITATIONS": _joined(limitations),
        "SKIPPED": _skipped(outcomes),
        "CANNOT RUN HERE": by_reason(skips),
    }
    for title, reasons in sections.items():
        if reasons:
            lines += ["", title, *(f"  {line}" for line in reasons)]
    return "\n".join(lines)


def _skipped(outcomes: Sequence[Outcome]) -> list[str]:
    """Each reason once with its checks, and with stacks and layers unless all have the reason."""
    every = {item.deployment for item in outcomes}
    by_reason: dict[str, list[Outcome]] = {}
    for item in outcomes:
        if item.word == "skipped":
            by_reason.setdefault(item.skipped or "", []).append(item)
    lines = []
    for reason, items in by_reason.items():
        if {item.deployment for item in items} == every:
            checks = dict.fromkeys(item.check for item in items)
            lines.append(f"{', '.join(checks)}: {reason}")
        else:
            lines += _joined((item.layer, reason, item.stack, item.check) for item in items)
    return lines


def count(outcomes: Iterable[Outcome]) -> str:
    """The outcomes of a deployment's checks, counted, in words."""
    words = [item.word for item in outcomes]
    failed, limited, left = map(words.count, ("failed", "known limitation", "skipped"))
    if failed:
        return f"{failed} of {len(words)} checks failed"
    text = f"{plural(len(words) - left - limited, 'check')} passed"
    if limited:
        text += f", {plural(limited, 'known limitation')}"
    if left:
        text += f", {left} skipped"
    return text


def by_reason(skips: Iterable[Skip]) -> list[str]:
    """Each reason once, after its stacks and layer."""
    return _joined((skip.layer, skip.reason, skip.stack, "") for skip in skips)


def _joined(rows: Iterable[tuple[str, str, str, str]]) -> list[str]:
    """Each layer and reason once, after the stacks and before the checks."""
    stacks_of: dict[tuple[str, str], dict[str, None]] = {}
    checks_of: dict[tuple[str, str], dict[str, None]] = {}
    for layer, reason, stack, check in rows:
        stacks_of.setdefault((layer, reason), {})[stack] = None
        checks_of.setdefault((layer, reason), {})[check] = None
    lines = []
    for (layer, reason), stacks in stacks_of.items():
        line = f"{', '.join(stacks)} with layer {layer}"
        if checks := ", ".join(checks_of[layer, reason]):
            line += f", {checks}"
        lines.append(f"{line}: {reason}")
    return lines
