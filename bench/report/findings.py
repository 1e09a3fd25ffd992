"""The answer in plain sentences, computed from the figures. Pure.

Names stand between backticks, which each form of the report turns into its own markup. A sentence claims a
difference only where the ranges of the rounds lie apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bench.figures.stats import INCONCLUSIVE
from bench.report import ratings, redact
from bench.report.model import BASELINE, FAILED, MEASURED, NOT_RUN, OPEN, SKIPPED, VOIDED, Panel, Report, Row, compared
from bench.report.numbers import (
    MIB,
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
from bench.report.safety import told

MOST_NAMES = 4  # of deployments that a sentence lists
SHOWN_PERCENTILES = (("p50", "latency_p50_ms"), ("p99", "latency_p99_ms"))
FEW_ROUNDS = 5  # below, a bootstrap interval of a median is much too narrow
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
    return ", ".join(words)


def answers(report: Report) -> list[Answer]:
    """One answer for each workload (size, database), at the highest level that was measured."""
    return [_answer(report, panel) for panel in report.main_panels]


def _answer(report: Report, panel: Panel) -> Answer:
    ranked = panel.ranked
    if not ranked:
        return Answer(panel, None, ("Nothing was measured here: see what was skipped and what failed.",))
    best, rest = ranked[0], ranked[1:]
    near = [row for row in rest if _inconclusive(report, row, best)]
    sentences = [
        _fastest(panel, best, near, report.run.info.plan.margin),
        _next(near, rest),
        _cost(panel, best),
        _latency(best),
        _stacks(report, panel),
        _errors(best),
    ]
    return Answer(panel, best, tuple(sentence for sentence in sentences if sentence))


def _inconclusive(report: Report, row: Row, other: Row) -> bool:
    """True when several rounds of both do not tell which is faster."""
    found = compared(row, other, report.run.info.plan.margin)
    return found is not None and found.rounds > 1 and found.verdict == INCONCLUSIVE


def inconclusive(report: Report) -> list[str]:
    """For each panel with a doubtful first place, who may be the fastest."""
    said = []
    for panel in report.main_panels:
        ranked = panel.ranked
        near = [row for row in ranked[1:] if _inconclusive(report, row, ranked[0])]
        if near:
            names = joined([f"{deployment(row)} ({number(row.rate.median)})" for row in near])
            said.append(
                f"{setting_title(report, panel)}: {deployment(ranked[0])} ({number(ranked[0].rate.median)} requests/s) "
                f"has the highest median and is not told apart from {names}."
            )
    return said


def _fastest(panel: Panel, best: Row, near: list[Row], margin: float) -> str:
    rate = best.rate
    figure = f"{number(rate.median)} requests/s"
    if len(panel.ranked) == 1:
        among = f"({range_of(rate)} over {rate.count} rounds)" if rate.count > 1 else "in the only round"
        return f"{deployment(best)}, the only one with a figure here, served {figure} {among}."
    if rate.count == 1:
        claim = f"was fastest in the only round: {figure}"
    elif near:
        claim = f"has the highest median: {figure} ({range_of(rate)} over {rate.count} rounds)"
    else:
        claim = f"was fastest: median {figure} ({range_of(rate)} over {rate.count} rounds)"
    return f"{deployment(best)} {claim}{_against_baseline(panel, best, margin)}."


def _against_baseline(panel: Panel, best: Row, margin: float) -> str:
    none = panel.row(best.stack, BASELINE)
    if best.layer == BASELINE:
        return "; no layer made it faster" if any(row.stack == best.stack for row in panel.ranked[1:]) else ""
    if none is None or none.rate is None or best.times_none is None:
        return f"; {quoted(BASELINE)} was not measured on that stack, so there is no ratio"
    ratio = f"{number(best.times_none.median)} times {quoted(BASELINE)} on the same stack ({number(none.rate.median)})"
    found = compared(best, none, margin)
    if found is not None and found.rounds > 1 and found.verdict == INCONCLUSIVE:
        return f", {ratio}; the rounds do not tell the two apart, so that difference is inconclusive"
    return f", {ratio}"


def _next(near: list[Row], rest: list[Row]) -> str:
    if near:
        names = joined([f"{deployment(row)} ({number(row.rate.median)})" for row in near[:3]])
        more = f" and {plural(len(near) - 3, 'other')}" if len(near) > 3 else ""
        verb = "is" if len(near) == 1 else "are"
        return f"{names}{more} {verb} not told apart from it: which is faster is inconclusive."
    return f"Next: {deployment(rest[0])}, {number(rest[0].rate.median)} requests/s." if rest else ""


def _cost(panel: Panel, best: Row) -> str:
    costs = _costs(best)
    if not costs:
        return "Its memory and CPU time were not measured."
    none = panel.row(best.stack, BASELINE)
    compared_ = _costs(none) if none is not None and best.layer != BASELINE else []
    against = f"; with {quoted(BASELINE)}: {joined(compared_)}" if compared_ else ""
    return f"It takes {joined(costs)}{against}."


def _costs(row: Row) -> list[str]:
    costs = []
    if row.memory_total:
        costs.append(f"{mebibytes(row.memory_total.median)} MiB of memory at the peak")
    if row.cpu_total:
        costs.append(f"{number(row.cpu_total.median)} CPU seconds per 1,000 requests")
    return costs


def _stacks(report: Report, panel: Panel) -> str:
    """Which stack is fastest before any layer is laid over it."""
    bare = [row for row in panel.ranked if row.layer == BASELINE]
    if len(bare) < 2:
        return ""
    first, last = bare[0], bare[-1]
    found = compared(first, last, report.run.info.plan.margin)
    ratio = number(found.ratio if found else first.rate.median / last.rate.median)
    figures = f"{quoted(first.stack)} {{}} {number(first.rate.median)} requests/s, {ratio} times {quoted(last.stack)}"
    if len(bare) == len(panel.ranked):  # what leads was said already
        if _inconclusive(report, first, last):
            return f"Not even the slowest, {quoted(last.stack)}, is told apart from it."
        rate = f"{number(last.rate.median)} requests/s"
        return f"The slowest is {quoted(last.stack)}, {rate}: round by round, the fastest serves {ratio} times that."
    sentence = f"Without a layer ({quoted(BASELINE)}), "
    if _inconclusive(report, first, last):
        return (
            f"{sentence}{figures.format('has the highest median,')}; the rounds do not tell them apart: inconclusive."
        )
    return f"{sentence}{figures.format('leads with')}."


def _latency(best: Row) -> str:
    known = [(name, figure) for name, field in SHOWN_PERCENTILES if (figure := best.figure(field)) is not None]
    if not known:
        return ""
    half, high = known[0], known[-1]
    if half is high:
        return ""
    share = {"p90": "90 in 100", "p99": "99 in 100", "p99.9": "999 in 1,000"}[high[0]]
    return f"Half of its answers came within {number(half[1].median)} ms, {share} within {number(high[1].median)} ms."


def _errors(best: Row) -> str:
    errors = best.errors()
    if not errors:
        return ""
    return f"It gave {plural(errors, 'error')} in {plural(best.requests, 'answer')}: see the table."


# --------------------------------------------------------------------------------------- which to pick


def pick(report: Report, *, short: bool = False) -> list[str]:
    """Which deployment to pick and what it costs, over all workloads of the run, in plain sentences.

    `short`: these two things and what was not compared, without safety, stability and what else there is to say.
    """
    panels = [panel for panel in report.main_panels if panel.ranked]
    if not panels:
        return ["Nothing was measured, so there is nothing to pick: see what was skipped and what failed."]
    wins: dict[tuple[str, str], list[Panel]] = {}
    for panel in panels:
        best = panel.ranked[0]
        for row in panel.ranked:
            if row is best or _inconclusive(report, row, best):
                wins.setdefault((row.stack, row.layer), []).append(panel)
    chosen = max(wins, key=lambda key: (len(wins[key]), _weight(panels, key)))
    rows = [row for panel in panels if (row := panel.row(*chosen)) is not None and row.ranked]
    tied = _tied(wins, chosen)
    sentences = [
        _pick(report, panels, wins, chosen),
        _pick_cheapest(panels, [chosen, *tied]),
        _pick_cost(rows, _name(chosen) if tied else "It"),
    ]
    if not short:
        sentences += [
            told(report, *chosen),
            _pick_stability(report, chosen),
            _pick_bare(report, panels, chosen),
        ]
    sentences.append(_not_compared(panels))
    return [sentence for sentence in sentences if sentence]


def _weight(panels: list[Panel], key: tuple[str, str]) -> float:
    """How a deployment compares with the fastest of each panel, multiplied over the panels it was ranked in."""
    shares = [row.rate.median / panel.ranked[0].rate.median for panel in panels if (row := _ranked(panel, key))]
    return math.prod(shares) if len(shares) == len(panels) else 0.0


def _ranked(panel: Panel, key: tuple[str, str]) -> Row | None:
    return next((row for row in panel.ranked if (row.stack, row.layer) == key), None)


def _pick(report: Report, panels: list[Panel], wins: dict, chosen: tuple[str, str]) -> str:
    name, count = _name(chosen), len(wins[chosen])
    others = [_name(key) for key in _tied(wins, chosen)]
    if len(panels) == 1:
        where = f"on {setting_title(report, panels[0])}"
    else:
        where = "on every workload" if count == len(panels) else f"on {count} of {len(panels)} workloads"
    if min(row.rate.count for panel in panels for row in panel.ranked) < 2:
        return f"Pick {name}: the highest figure {where}, of one round only, which proves no difference."
    if not others:
        return f"Pick {name}: it serves most {where}."
    more = [f"{len(others) - MOST_NAMES} more"] if len(others) > MOST_NAMES else []
    named = joined([name, *others[:MOST_NAMES], *more], "or")
    return f"Pick {named}: the rounds do not tell them apart {where}, so choose by cost and safety."


def _tied(wins: dict, chosen: tuple[str, str]) -> list[tuple[str, str]]:
    """The deployments that are first, or not told apart from the first, as often as the chosen one."""
    return [key for key, found in wins.items() if key != chosen and len(found) == len(wins[chosen])]


def _name(key: tuple[str, str]) -> str:
    return f"{quoted(key[0])} with {quoted(key[1])}"


def _pick_cheapest(panels: list[Panel], keys: list[tuple[str, str]]) -> str:
    """Of several deployments that are equally fast as far as is known, the one that takes least memory."""
    needs = {}
    for key in keys:
        rows = [row for panel in panels if (row := _ranked(panel, key))]
        if rows and all(row.memory_total for row in rows):
            needs[key] = max(row.memory_total.median for row in rows)
    if len(needs) < 2:
        return ""
    least = min(needs, key=needs.__getitem__)
    return f"Of these {_name(least)} takes least memory: {mebibytes(needs[least])} MiB at the peak."


def _pick_cost(rows: list[Row], who: str) -> str:
    memory = [row.memory_total.median for row in rows if row.memory_total]
    cpu = [row.cpu_total.median for row in rows if row.cpu_total]
    parts = []
    if memory:
        parts.append(f"{_between([value / MIB for value in memory])} MiB of memory at the peak")
    if cpu:
        parts.append(f"{_between(cpu)} CPU seconds for 1,000 requests")
    return f"{who} costs {joined(parts)}." if parts else "What it costs was not measured."


def _between(values: list[float]) -> str:
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def _pick_stability(report: Report, chosen: tuple[str, str]) -> str:
    found = ratings.worst(report, *chosen)
    if found is None:
        return ""
    reasons = f": {'; '.join(found.reasons)}" if found.reasons else ""
    return f"Its stability is {found.rating}{reasons}."


def _pick_bare(report: Report, panels: list[Panel], chosen: tuple[str, str]) -> str:
    """The stack to pick where nothing may be cached."""
    if chosen[1] == BASELINE:
        return ""
    leaders: dict[str, list[str]] = {}
    for panel in panels:
        bare = [row for row in panel.ranked if row.layer == BASELINE]
        if len(bare) > 1:
            near = [row.stack for row in bare[1:] if _inconclusive(report, row, bare[0])]
            names = " or ".join(map(quoted, [bare[0].stack, *near[:2]]))
            names += f" or {plural(len(near) - 2, 'other')}" if len(near) > 2 else ""
            leaders.setdefault(names, []).append(setting_title(report, panel))
    if not leaders:
        return ""
    if len(leaders) == 1:
        return f"Where nothing may be cached, pick {next(iter(leaders))}."
    return f"Where nothing may be cached, pick {joined([f'{who} on {joined(on)}' for who, on in leaders.items()])}."


def _not_compared(panels: list[Panel]) -> str:
    """What was tried and has no figure to be compared, so that nobody takes it for slower."""
    told = []
    for outcome in (VOIDED, FAILED):
        rows = [row for panel in panels for row in panel.rows if row.outcome == outcome]
        if names := list(dict.fromkeys(_name((row.stack, row.layer)) for row in rows)):
            more = [f"{len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
            told.append(f"{joined(names[:MOST_NAMES] + more)} ({outcome})")
    return f"Not compared, for want of a sound figure on every workload: {'; '.join(told)}." if told else ""


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
        for outcome, word in ((FAILED, "failed"), (VOIDED, "voided"), (SKIPPED, "skipped"), (NOT_RUN, "not run"))
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
    return [*_conditions(report), rounds_note([report]), *lost([report]), *_notes(report)]


def joint_caveats(reports: Sequence[Report]) -> list[str]:
    """The caveats of several runs as one: what holds for all is said once, what counts trials is added up."""
    conditions = [note for report in reports for note in _conditions(report)]
    notes = [note for report in reports for note in _notes(report)]
    return list(dict.fromkeys([*conditions, rounds_note(reports), *lost(reports), *notes]))


def _conditions(report: Report) -> list[str]:
    """Under which conditions the figures came about."""
    run = report.run
    environment = run.environment
    tool, notes = environment.load_tool, []
    if run.info.finished_at is None:
        notes.append("This run did not finish: the report shows the trials that were made until then.")
    if tool.fallback and not _told(run.info.notes, tool.name):
        notes.append(
            f"The load came from {quoted(tool.name)}, the fallback where no faster load tool is installed. "
            "It needs more CPU for each request, so fast cases are held back by it: read their figures as lower bounds."
        )
    if environment.cores <= FEW_CORES and not _told(run.info.notes, "cores"):
        notes.append(
            f"Load tool, servers and services share {plural(environment.cores, 'core')}: figures are relative. "
            "Compare them with each other, not with figures from other machines."
        )
    return notes


def lost(reports: Sequence[Report]) -> list[str]:
    """What has no figures that count: wrong answers, failed and voided trials, of all runs together."""
    notes = []
    wrong = {key: 0 for report in reports for key, checks in report.checks.items() if any(not c.ok for c in checks)}
    if wrong:
        names = [f"{quoted(stack)} with {quoted(layer)}" for stack, layer in wrong]
        who = joined(names) if len(names) <= MOST_NAMES else f"{len(names)} stacks with layers"
        notes.append(f"Checks found wrong answers from {who}: not ranked, see the checks.")
    if failed := sum(len(failure.rounds) for report in reports for failure in report.failures):
        notes.append(f"{plural(failed, 'trial')} failed; a failed trial has a reason and no figures.")
    if voided := sum(len(failure.rounds) for report in reports for failure in report.voided):
        notes.append(f"Guards voided {plural(voided, 'trial')}: their figures are kept and count nowhere.")
    if again := sum(len(report.run.trials) - len({t.trial_id for t in report.run.trials}) for report in reports):
        notes.append(f"Trials made again because other processes disturbed them: {again}.")
    return notes


def _notes(report: Report) -> list[str]:
    """What the run itself said, as sentences."""
    notes = [one_line(note) for note in report.run.info.notes]
    return [note if note.endswith((".", "!", "?")) else f"{note}." for note in notes]


def _told(notes: tuple[str, ...], word: str) -> bool:
    """True when the run itself already says something about it."""
    return any(word in note for note in notes)


def rounds_note(reports: Sequence[Report]) -> str:
    """Of how many rounds the figures are, and what their intervals are worth."""
    margin = max(report.run.info.plan.margin for report in reports)
    most = [
        max((row.rate.count for row in report.rows if row.rate), default=report.run.info.plan.rounds)
        for report in reports
    ]
    rounds, fewest = max(most), min(most)
    if rounds == 1:
        return "One round only: every figure is a single reading, and no difference is proved by it."
    count = f"{rounds}" if fewest == rounds else f"{fewest} to {rounds}"
    few = ""
    if 1 < fewest < FEW_ROUNDS:
        share = 100 * (1 - 2 ** (1 - fewest))
        few = (
            f" Of {fewest} rounds that interval is no more than their range, "
            f"which holds the true median {share:.0f} times in 100."
        )
    return (
        f"Figures are medians of {count} rounds with their bootstrap 95 % interval.{few} One thing is called faster "
        f"than another only where the whole 95 % interval of their ratio, paired by round, lies more than "
        f"{margin * 100:g} % from 1; all else is inconclusive."
    )


def facts(report: Report) -> list[str]:
    """How far the instrument itself can be trusted in this run, as far as it was measured."""
    trials = [trial for trial in report.run.trials if trial.status != "failed"]
    ceilings = [trial.tool_ceiling_per_second for trial in trials if trial.tool_ceiling_per_second]
    observers = [trial.observer_share for trial in trials if trial.observer_share is not None]
    others = [trial.other_cpu_share for trial in trials if trial.other_cpu_share is not None]
    bodies = sum(trial.bodies_checked or 0 for trial in trials)
    said = []
    if ceilings:
        said.append(
            f"The load tool could make {number(max(ceilings))} requests/s at most, by what a plain file cost it."
        )
    if observers:
        said.append(f"Observing took at most {number(max(observers) * 100)} % of the machine's processor time.")
    if others:
        said.append(f"Other processes took at most {number(max(others) * 100)} % of the machine's processor time.")
    if bodies:
        said.append(f"{bodies:,} pages were fetched during the load and compared with what is right.")
    if guards := report.run.info.plan.guards:
        bounds = ", ".join(f"{name} {value:g}" for name, value in guards.items())
        said.append(f"Bounds of the guards that void a trial: {bounds}.")
    if affinity := report.run.environment.affinity:
        pinned = ", ".join(f"{name} on {', '.join(map(str, cores))}" for name, cores in affinity.items())
        said.append(f"Processor cores: {pinned}.")
    return said


def command(report: Report) -> str:
    """The command line that made the run."""
    return redact.command(report.run.info.command)


def machine(report: Report) -> list[tuple[str, str]]:
    """Facts about the machine and the run: name and value."""
    environment, plan = report.run.environment, report.run.info.plan
    tool = environment.load_tool
    levels = joined([f"{level:,}" for level in plan.levels])
    unit = "requests/s, open loop" if plan.mode == OPEN else "connections"
    facts = [
        (
            "Machine",
            f"{environment.cpu_model or 'CPU not known'}, {plural(environment.cores, 'core')}, "
            f"{size(environment.memory_bytes)} of memory",
        ),
        ("System", f"{environment.os or 'not known'}, {environment.kernel}"),
        ("Load tool", f"{tool.name} {tool.version or ''}".strip() + (" (fallback)" if tool.fallback else "")),
        ("Load", f"{levels} {unit}, {plural(plan.rounds, 'round')} of {plan.duration_s:g} s"),
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
