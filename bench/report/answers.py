"""The answer in plain sentences, computed from the figures. Pure.

Names stand between backticks, which each form of the report turns into its own markup. A sentence claims a
difference only where the ranges of the rounds lie apart.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from bench.report.model import BASELINE, FAILED, MEASURED, NOT_RUN, SKIPPED, Panel, Report, Row
from bench.report.numbers import (
    TIMES,
    duration,
    joined,
    mebibytes,
    moment,
    number,
    one_line,
    plural,
    range_of,
    size,
    when,
)
from bench.report.redact import redacted
from bench.stats import INCONCLUSIVE, chance_of_separation, verdict

MOST_NAMES = 4  # of deployments that a sentence lists
FEW_CORES = 4  # up to here the load tool and the servers surely compete for cores


@dataclass(frozen=True)
class Answer:
    """What one panel says: the fastest row, and sentences about it."""

    panel: Panel
    best: Row | None
    sentences: tuple[str, ...]


def quoted(name: str) -> str:
    """A name between backticks."""
    return "`" + one_line(name).replace("`", "'") + "`"


def deployment(row: Row) -> str:
    """A stack with its layer, in words."""
    return f"{quoted(row.stack)} with {quoted(row.layer)}"


def setting_title(report: Report, panel: Panel) -> str:
    """The workload, and whatever else tells this panel from the report's other ones."""
    here, others = panel.setting, [other.setting for other in report.main_panels]
    words = [quoted(here.workload)]
    if len({other.size for other in others}) > 1 or here.size != "unlimited":
        words.append(f"size {quoted(here.size)}")
    if len({other.database for other in others}) > 1:
        words.append(quoted(here.database))
    if len({other.state for other in others}) > 1 or here.state != "warm":
        words.append(here.state)
    return ", ".join(words)


def answers(report: Report) -> list[Answer]:
    """One answer for each workload (size, database, state), at the highest level that was measured."""
    return [_answer(panel) for panel in report.main_panels]


def _answer(panel: Panel) -> Answer:
    ranked = panel.ranked
    if not ranked:
        return Answer(panel, None, ("Nothing was measured here: see what was skipped and what failed.",))
    best, rest = ranked[0], ranked[1:]
    near = [row for row in rest if best.rate.count > 1 and best.rate.overlaps(row.rate)]
    sentences = [_fastest(panel, best, near), _next(near, rest), _cost(panel, best), _stacks(panel), _errors(best)]
    return Answer(panel, best, tuple(sentence for sentence in sentences if sentence))


def _fastest(panel: Panel, best: Row, near: list[Row]) -> str:
    rate = best.rate
    figure = f"{number(rate.median)} requests/s"
    if rate.count == 1:
        claim = f"was fastest in the only round: {figure}"
    elif near:
        claim = f"has the highest median: {figure} ({range_of(rate)} over {rate.count} rounds)"
    else:
        claim = f"was fastest: median {figure} ({range_of(rate)} over {rate.count} rounds)"
    return f"{deployment(best)} {claim}{_against_baseline(panel, best)}."


def _against_baseline(panel: Panel, best: Row) -> str:
    none = panel.row(best.stack, BASELINE)
    if best.layer == BASELINE:
        return "; no layer made it faster" if any(row.stack == best.stack for row in panel.ranked[1:]) else ""
    if none is None or none.rate is None or best.times_none is None:
        return f"; {quoted(BASELINE)} was not measured on that stack, so there is no ratio"
    ratio = f"{number(best.times_none.median)} times {quoted(BASELINE)} on the same stack ({number(none.rate.median)})"
    if min(none.rate.count, best.rate.count) > 1 and verdict(none.rate, best.rate) == INCONCLUSIVE:
        return f", {ratio}; those ranges overlap, so that difference is inconclusive"
    return f", {ratio}"


def _next(near: list[Row], rest: list[Row]) -> str:
    if near:
        names = joined([f"{deployment(row)} ({number(row.rate.median)})" for row in near[:3]])
        more = f" and {plural(len(near) - 3, 'other')}" if len(near) > 3 else ""
        return f"The range of {names}{more} overlaps with it: which is faster is inconclusive."
    return f"Next: {deployment(rest[0])}, {number(rest[0].rate.median)} requests/s." if rest else ""


def _cost(panel: Panel, best: Row) -> str:
    costs = _costs(best)
    if not costs:
        return "Its memory and CPU time were not measured."
    none = panel.row(best.stack, BASELINE)
    compared = _costs(none) if none is not None and best.layer != BASELINE else []
    against = f"; with {quoted(BASELINE)}: {joined(compared)}" if compared else ""
    return f"It takes {joined(costs)}{against}."


def _costs(row: Row) -> list[str]:
    costs = []
    if row.memory_total:
        costs.append(f"{mebibytes(row.memory_total.median)} MiB of memory at the peak")
    if row.cpu_total:
        costs.append(f"{number(row.cpu_total.median)} CPU seconds per 1,000 requests")
    return costs


def _stacks(panel: Panel) -> str:
    """Which stack is fastest before any layer is laid over it."""
    bare = [row for row in panel.ranked if row.layer == BASELINE]
    if len(bare) < 2:
        return ""
    first, last = bare[0], bare[-1]
    ratio = number(first.rate.median / last.rate.median)
    sentence = (
        f"Without a layer ({quoted(BASELINE)}), {quoted(first.stack)} leads with "
        f"{number(first.rate.median)} requests/s, {ratio} times {quoted(last.stack)}"
    )
    if min(first.rate.count, last.rate.count) > 1 and first.rate.overlaps(last.rate):
        return f"{sentence}; the ranges overlap: inconclusive."
    return f"{sentence}."


def _errors(best: Row) -> str:
    errors = best.errors()
    if not errors:
        return ""
    return f"It gave {plural(errors, 'error')} in {plural(best.requests, 'answer')}: see the table."


# ------------------------------------------------------------------------------------------- the frame


def summary(report: Report) -> str:
    """What was compared, in one sentence."""
    panels = report.main_panels
    workloads = list(dict.fromkeys(panel.setting.workload for panel in panels))
    return (
        f"{plural(len(report.stacks), 'stack')} {TIMES} {plural(len(report.layers), 'layer')} on "
        f"{plural(len(workloads), 'workload')}"
    )


def measured(report: Report) -> str:
    """How many cases were measured, failed, were skipped or not reached."""
    counts = report.counts()
    parts = [f"{plural(counts[MEASURED], 'case')} measured"]
    parts += [
        f"{counts[outcome]:,} {word}"
        for outcome, word in ((FAILED, "failed"), (SKIPPED, "skipped"), (NOT_RUN, "not run"))
        if counts[outcome]
    ]
    return ", ".join(parts)


def timespan(report: Report) -> str:
    """When the run took place and how long it took."""
    info = report.run.info
    start, end = moment(info.started_at), moment(info.finished_at)
    if not (start and end):
        return f"started {when(info.started_at)}" + ("" if end else ", not finished")
    return f"{when(info.started_at)}, {duration(max((end - start).total_seconds(), 0))}"


def caveats(report: Report) -> list[str]:
    """What a reader must know before trusting a figure, most important first."""
    run, plan = report.run, report.run.info.plan
    environment = run.environment
    tool, notes = environment.load_tool, []
    if run.info.finished_at is None:
        notes.append("This run did not finish: the report shows the trials that were made until then.")
    if tool.fallback and not _told(run.info.notes, tool.name):
        notes.append(
            f"The load came from {quoted(tool.name)}, the fallback that pip installs where no system load tool "
            "is found. It needs far more CPU for each request, so fast cases are held back by it: read their "
            "figures as lower bounds."
        )
    if environment.cores <= FEW_CORES and not _told(run.info.notes, "cores"):
        notes.append(
            f"Load tool, servers and services share {plural(environment.cores, 'core')}: figures are relative. "
            "Compare them with each other, not with figures from other machines."
        )
    notes.append(_rounds_note(max((row.rate.count for row in report.rows if row.rate), default=plan.rounds)))
    wrong = [key for key, checks in report.checks.items() if any(not check.ok for check in checks)]
    if wrong:
        names = [f"{quoted(stack)} with {quoted(layer)}" for stack, layer in wrong]
        who = joined(names) if len(names) <= MOST_NAMES else f"{len(names)} stacks with layers"
        notes.append(f"Checks found wrong answers from {who}: not ranked, see the checks.")
    if report.failures:
        failed = sum(len(failure.rounds) for failure in report.failures)
        notes.append(f"{plural(failed, 'trial')} failed; a failed trial has a reason and no figures.")
    notes += [one_line(note) for note in run.info.notes]
    return notes


def _told(notes: tuple[str, ...], word: str) -> bool:
    """True when the run itself already says something about it."""
    return any(word in note for note in notes)


def _rounds_note(rounds: int) -> str:
    if rounds == 1:
        return "One round only: every figure is a single reading, and no difference is proved by it."
    chance = round(1 / chance_of_separation(rounds))
    return (
        f"Figures are medians of {rounds} rounds with their range. Ranges of two equal things lie apart by "
        f"chance about once in {chance:,}."
    )


def command(report: Report) -> str:
    """The command line that made the run."""
    return shlex.join(redacted(word) for word in report.run.info.command)


def machine(report: Report) -> list[tuple[str, str]]:
    """Facts about the machine and the run: name and value."""
    environment, plan = report.run.environment, report.run.info.plan
    tool = environment.load_tool
    levels = joined([f"{level:,}" for level in plan.levels])
    facts = [
        (
            "Machine",
            f"{environment.cpu_model or 'CPU not known'}, {plural(environment.cores, 'core')}, "
            f"{size(environment.memory_bytes)} of memory",
        ),
        ("System", f"{environment.os or 'not known'}, {environment.kernel}"),
        ("Load tool", f"{tool.name} {tool.version or ''}".strip() + (" (fallback)" if tool.fallback else "")),
        ("Load", f"{levels} connections, {plural(plan.rounds, 'round')} of {plan.duration_s:g} s"),
        ("Database", _database(report)),
    ]
    for name, changed in (("Changed values", plan.changes), ("Site's environment", plan.env)):
        if changed:
            facts.append((name, ", ".join(one_line(redacted(word)) for word in changed)))
    if environment.commit:
        changed = ", with uncommitted changes" if environment.dirty else ""
        facts.append(("Commit", environment.commit[:12] + changed))
    programs = [environment.python, *(f"{name} {version}" for name, version in environment.programs.items())]
    facts.append(("Programs", ", ".join(programs)))
    return facts


def _database(report: Report) -> str:
    plan = report.run.info.plan
    rows = f", {plan.rows_total:,} rows" if plan.rows_total is not None else ""
    return f"{plan.database}{rows}"
