"""Under which conditions a run was made, and what limits its figures: sentences and facts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from bench.figures.words import duration, joined, plural
from bench.report import redact
from bench.report.findings import deployment_name, quoted, some
from bench.report.model import FAILED, MEASURED, NOT_RUN, OPEN, SKIPPED, VOIDED, Report
from bench.report.numbers import TIMES, moment, number, one_line, size, when
from bench.report.redact import redacted
from bench.results.records import Environment, Plan

FEW_ROUNDS = 5  # below it a bootstrap interval of a median is too narrow
# Why a run until decided ended -> what that says.
ENDED = {
    "decided": "The run ended when every workload was decided: one case leads, or the rest tie within the margin.",
    "rounds": "The run ended after the rounds it may make; the cases that were left tie.",
    "budget": "The run ended when its time was up; the cases that were left tie. `--resume` goes on.",
}
# Options that a longer run of the same cases does not take over.
OF_ONE_RUN = ("--to", "--rounds", "--budget")
FOLDED = ("System", "Commit", "Programs")  # facts about the machine that most readers do not need at first
FEW_CORES = 4  # up to this the load tool and the servers compete for cores


def summary(report: Report) -> str:
    """What was compared, in one line."""
    workloads = dict.fromkeys(panel.setting.workload for panel in report.main_panels)
    return (
        f"{plural(len(report.stacks), 'stack')} {TIMES} {plural(len(report.layers), 'layer')} on "
        f"{plural(len(workloads), 'workload')}"
    )


def measured(report: Report) -> str:
    """How many cases were measured, failed, voided, skipped and not run."""
    counts = report.counts()
    parts = [f"{plural(counts[MEASURED], 'case')} measured"]
    parts += [f"{counts[outcome]:,} {outcome}" for outcome in (FAILED, VOIDED, SKIPPED, NOT_RUN) if counts[outcome]]
    return ", ".join(parts)


def timespan(report: Report) -> str:
    """When the run took place and how long it took."""
    return timespan_of(report.run.info.started_at, report.run.info.finished_at)


def timespan_of(started_at: str, finished_at: str | None) -> str:
    """A time and how long it took from there, or that it is not finished."""
    start, end = moment(started_at), moment(finished_at)
    if not (start and end):
        return f"started {when(started_at)}" + ("" if end else ", not finished")
    return f"{when(started_at)}, {duration(max((end - start).total_seconds(), 0))}"


# ------------------------------------------------------------------------------------------- caveats


def caveats(*reports: Report) -> list[str]:
    """What a reader must know before trusting a figure, most important first.

    The caveats of several runs are listed once, and their trials are added up.
    """
    limits = [note for report in reports for note in _limits(report)]
    notes = [note for report in reports for note in _notes(report)]
    racing = [note for report in reports if (note := racing_note(report))]
    return list(dict.fromkeys([*limits, rounds_note(reports), *racing, *_unusable(reports), *notes]))


def _limits(report: Report) -> list[str]:
    """What limits the figures: an unfinished run, a slow load tool, few cores."""
    run = report.run
    tool, notes = run.environment.load_tool, []
    if run.info.finished_at is None:
        notes.append("This run did not finish. The report shows the trials made so far.")
    elif run.missing > 0:
        notes.append(
            f"The run ended without a record of {plural(run.missing, 'trial')} of its plan. Make up for it with "
            f"{quoted(run.resume_command())}."
        )
    words = pairwise(run.info.command)
    if off := [word.removesuffix("=off") for option, word in words if option == "--guard" and word.endswith("=off")]:
        notes.append(f"Guards that were turned off: {', '.join(off)}. They would have voided disturbed trials.")
    if tool.fallback and not any(tool.name in note for note in run.info.notes):
        notes.append(
            f"The load came from {quoted(tool.name)}, the fallback when no faster load tool is installed. It "
            "needs more CPU time per request and so limits fast cases: read their figures as lower bounds."
        )
    if run.environment.cores <= FEW_CORES and not any("cores" in note for note in run.info.notes):
        notes.append(
            f"Load tool, servers and services share {plural(run.environment.cores, 'core')}. "
            "Compare figures within this report, not with other machines."
        )
    return notes


def _unusable(reports: Sequence[Report]) -> list[str]:
    """Wrong answers, failed, voided and repeated trials of all runs together."""
    notes = []
    wrong = [key for report in reports for key, checks in report.checks.items() if not all(c.ok for c in checks)]
    if names := [deployment_name(*key) for key in dict.fromkeys(wrong)]:
        notes.append(f"Wrong answers from {some(names)}: not ranked; see Safety.")
    if failed := sum(len(row.failed) for report in reports for row in report.rows):
        notes.append(f"{plural(failed, 'trial')} failed: a failed trial has a reason and no figures.")
    if voided := sum(len(row.voided) for report in reports for row in report.rows):
        notes.append(f"Guards voided {plural(voided, 'trial')}: the figures are recorded but not used.")
    if again := sum(_repeated(report) for report in reports):
        notes.append(f"Repeated because of interference of other processes: {plural(again, 'trial')}.")
    return notes


def _repeated(report: Report) -> int:
    """How many trials were repeated; a staircase tries rates twice without any interference."""
    trials = report.run.trials
    return 0 if report.run.info.plan.capacity else len(trials) - len({trial.trial_id for trial in trials})


def _notes(report: Report) -> list[str]:
    """The notes that the run recorded, as sentences."""
    notes = [one_line(note) for note in report.run.info.notes]
    return [note if note.endswith((".", "!", "?")) else f"{note}." for note in notes]


def rounds(plan: Plan) -> str:
    """How many rounds a run makes, as a sentence."""
    if not plan.until:
        return f"{plural(plan.rounds, 'round')}."
    return f"{_rounds(plan).capitalize()}, each of the cases that may still be the best."


def _rounds(plan: Plan) -> str:
    budget = f" or {duration(plan.budget_s)}" if plan.budget_s else ""
    return f"at most {plural(plan.rounds, 'round')}{budget}" if plan.until else plural(plan.rounds, "round")


def racing_note(report: Report) -> str:
    """How a run until decided ended, and what it means that cases were dropped; empty for other runs."""
    info = report.run.info
    if not info.plan.until:
        return ""
    dropped = sum(panel.setting.level == item.level for panel in report.main_panels[:1] for item in info.dropped)
    ended = ENDED[info.ended_by] if info.ended_by else "It was stopped before anything was decided."
    return (
        f"{plural(dropped, 'case')} could not be the best any more and {'was' if dropped == 1 else 'were'} dropped, "
        f"with fewer rounds than the others; that a dropped case is the best happens in at most 5 of 100 runs. {ended}"
    )


def rounds_note(reports: Sequence[Report]) -> str:
    """The number of rounds behind the figures, and how far their intervals can be trusted."""
    margin = max(report.run.info.plan.margin for report in reports)
    counts = [row.rate.count for report in reports for row in report.rows if row.rate]
    counts = counts or [report.run.info.plan.rounds for report in reports]
    fewest, most = min(counts), max(counts)
    if most == 1:
        return "One round only: each figure is a single reading and proves no difference."
    rounds = f"{most}" if fewest == most else f"{fewest} to {most}"
    few = ""
    if fewest == 1:
        few = " A figure of one round is a single reading."
    elif fewest < FEW_ROUNDS:
        percent = 100 * (1 - 2 ** (1 - fewest))
        few = f" With {fewest} rounds that is their range; it contains the true median {percent:.0f} % of the time."
    return (
        f"Figures are medians of {rounds} rounds with a bootstrap 95 % confidence interval.{few} A case counts as "
        f"slower only if, with 95 % confidence for all cases together, another one is more than {margin * 100:g} % "
        "faster, by the noise of all cases. Otherwise it ties with the fastest."
    )


# --------------------------------------------------------------------------------------------- facts


def facts(report: Report) -> list[str]:
    """How the instrument itself influenced the run, as far as it was measured."""
    trials = [trial for trial in report.run.trials if trial.status != "failed"]
    observers = [trial.observer_share for trial in trials if trial.observer_share is not None]
    others = [trial.other_cpu_share for trial in trials if trial.other_cpu_share is not None]
    bodies = sum(trial.bodies_checked or 0 for trial in trials)
    found = []
    if observers:
        found.append(f"The instrument itself used at most {number(max(observers) * 100)} % of the machine's CPU time.")
    if others:
        found.append(f"Other processes used at most {number(max(others) * 100)} % of the machine's CPU time.")
    if bodies:
        found.append(f"{bodies:,} pages were fetched during the load and compared with the right answer.")
    if guards := report.run.info.plan.guards:
        bounds = ", ".join(f"{name} {value:g}" for name, value in guards.items())
        found.append(f"Guards void a trial beyond these bounds: {bounds}.")
    if affinity := report.run.environment.affinity:
        pinned = ", ".join(f"{name} on {', '.join(map(str, cores))}" for name, cores in affinity.items())
        found.append(f"CPU cores: {pinned}.")
    return found


def case_notes(report: Report) -> list[tuple[str, list[str]]]:
    """Each note of a case once, with the deployments it applies to."""
    found: dict[str, dict[str, None]] = {}
    for case in report.run.info.cases:
        for note in case.notes:
            found.setdefault(note, {})[f"{case.stack} with {case.layer}"] = None
    return [(note, list(deployments)) for note, deployments in found.items()]


def command(report: Report) -> str:
    """The command line that made the run."""
    return redact.command(report.run.info.command)


def command_with_more_rounds(report: Report) -> str:
    """The command line of a run with twice the rounds, into a new folder; empty for commands that take no rounds."""
    words = report.run.info.command
    if words[3:4] != ("run",):
        return ""
    before = ("", *words)
    kept = [
        word
        for word, option in zip(words, before, strict=False)
        if option not in OF_ONE_RUN and word.partition("=")[0] not in OF_ONE_RUN
    ]
    rounds = max(2 * report.run.info.plan.rounds, FEW_ROUNDS)
    return redact.command((*kept, "--rounds", str(rounds)))


def machine(report: Report) -> list[tuple[str, str]]:
    """Facts about the machine and the run: name and value."""
    environment, plan = report.run.environment, report.run.info.plan
    tool = environment.load_tool
    levels = joined([f"{level:,}" for level in plan.levels])
    load = f"{levels} {'requests/s, open loop' if plan.mode == OPEN else 'connections'}"
    if limits := dict.fromkeys(panel.setting.limit for panel in report.panels if panel.setting.limit):
        load = f"the highest rate with {joined(list(limits))}, open loop"
    rows = f", {plan.rows_total:,} rows" if plan.rows_total is not None else ""
    found = [
        *machine_of(environment),
        ("Load tool", f"{tool.name} {tool.version or ''}".strip() + (" (fallback)" if tool.fallback else "")),
        ("Load", f"{load}, {_rounds(plan)} of {plan.duration_s:g} s"),
        ("Database", f"{plan.database}{rows}"),
    ]
    if plan.project:
        found.append(("Project", redacted(plan.project)))
    for name, changes in (("Changed values", plan.changes), ("Project environment", plan.env)):
        if changes:
            found.append((name, ", ".join(one_line(redacted(text)) for text in changes)))
    return [*found, *programs_of(environment)]


def machine_of(environment: Environment) -> list[tuple[str, str]]:
    """The machine and its system."""
    cpu = environment.cpu_model or "CPU not known"
    return [
        ("Machine", f"{cpu}, {plural(environment.cores, 'core')}, {size(environment.memory_bytes)} of memory"),
        ("System", f"{environment.os or 'not known'}, {environment.kernel}"),
    ]


def programs_of(environment: Environment) -> list[tuple[str, str]]:
    """The commit and the versions of the programs."""
    found = []
    if environment.commit:
        dirty = ", with uncommitted changes" if environment.dirty else ""
        found.append(("Commit", environment.commit[:12] + dirty))
    others = (f"@python={version}: {text}" for version, text in (environment.pythons or {}).items())
    servers = (f"{name} {version}" for name, version in environment.programs.items())
    programs = [environment.python, *others, *servers]
    return [*found, ("Programs", ", ".join(programs))]
