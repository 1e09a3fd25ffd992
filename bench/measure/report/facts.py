"""A folder's machine and request in words, skipped cases, and notes on trust in the figures. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import chain

from bench.measure.records.capacity import climbs
from bench.measure.records.folder import Run
from bench.measure.records.records import Plan, project_words
from bench.measure.records.trials import discarded_by
from bench.measure.report import redact
from bench.measure.stats import histogram
from bench.words import case_name, duration, first_names, joined, one_line, plural, setting_words, size

FEW_CORES = 4
ENDED = {
    "decided": "It ended when the best was decided.",
    "rounds": "It made every round without a decision.",
    "budget": "Its time was up before a decision.",
}


def of_run(run: Run) -> dict[str, str]:
    """Name -> a fact of a run."""
    plan, tool = run.info.plan, run.environment.load_tool
    rows = ""
    if plan.rows_total is not None:
        rows = f", {plan.rows_total:,} rows"
    fallback = ""
    if tool.fallback:
        fallback = " (slower than wrk, which is not installed)"
    extra = {
        "Load": f"{_load(plan)}, {_rounds(plan)} of {plan.duration_s:g} s, by {tool.name} {tool.version or ''}".rstrip()
        + fallback,
        "Database": f"{plan.database}{rows}",
    }
    return _facts(run, extra)


def of_faults(run: Run) -> dict[str, str]:
    """Name -> a fact of a folder of faults."""
    plan = run.info.plan
    rates = [outcome.rate_per_second for outcome in run.latest_outcomes.values() if outcome.rate_per_second]
    rates_text = ""
    if rates:
        ends = dict.fromkeys(f"{rate:,.0f}" for rate in (min(rates), max(rates)))
        rates_text = f", visitors at {' to '.join(ends)} requests/s"
    return _facts(run, {"Faults": f"{plural(plan.rounds, 'round')}{rates_text}", "Database": plan.database})


def _facts(run: Run, extra: dict[str, str]) -> dict[str, str]:
    plan, environment, info = run.info.plan, run.environment, run.info
    versions = [f"{name} {version}" for name, version in environment.programs.items()]
    others = [f"Python {version}: {text}" for version, text in (environment.pythons or {}).items()]
    commit = (environment.commit or "")[:12]
    if commit and environment.dirty:
        commit += " with changes"
    cpu = environment.cpu_model or "CPU not known"
    texts = {
        "Machine": f"{cpu}, {plural(environment.cores, 'core')}, {size(environment.memory_bytes)}",
        "System": f"{environment.os or 'not known'}, {environment.kernel}",
        **extra,
        "Took": _took(info.started_at, info.finished_at or ""),
        "Project": one_line(redact.redacted(plan.project)),
        "Values": _changed(plan.changes),
        "Environment": _changed(plan.env),
        "Hosts": ", ".join(f"{name} ({', '.join(groups)})" for name, groups in (environment.hosts or {}).items()),
        "Versions": ", ".join([environment.python, *others, *versions]),
        "Commit": commit,
        "Command": redact.command(info.command),
    }
    return {name: text for name, text in texts.items() if text}


def _changed(settings: Mapping[str, object]) -> str:
    return ", ".join(one_line(redact.redacted(text)) for text in setting_words(settings))


def _load(plan: Plan) -> str:
    if plan.capacity:
        return f"the highest rate with {plan.capacity.words}"
    levels = joined([f"{level:,}" for level in plan.levels])
    if plan.mode == "open":
        return f"{levels} requests/s"
    return f"{levels} connections"


def _rounds(plan: Plan) -> str:
    budget = ""
    if plan.budget_s:
        budget = f" or {duration(plan.budget_s)}"
    if plan.until:
        return f"at most {plural(plan.rounds, 'round')}{budget}"
    return plural(plan.rounds, "round")


def _took(started: str, finished: str) -> str:
    try:
        return duration((datetime.fromisoformat(finished) - datetime.fromisoformat(started)).total_seconds())
    except (ValueError, TypeError):
        return ""


def more_rounds(run: Run) -> str:
    """The command for more rounds of the same cases, or for more time after a run out of time, without secrets; empty
    for a search for settings."""
    words, plan = list(run.info.command), run.info.plan
    if plan.tunes:
        return ""
    made = max((trial.round for trial in run.trials), default=0)
    replaced, more = ["--rounds", "--max-time", "--resume"], ["--rounds", str(2 * plan.rounds)]
    if plan.budget_s and made < plan.rounds:
        replaced, more = ["--max-time", "--resume"], ["--max-time", f"{2 * plan.budget_s:.0f}s"]
    joined = tuple(f"{option}=" for option in replaced)
    words = [word for word in words if not word.startswith(joined)]
    for option in replaced:
        if option in words:
            at = words.index(option)
            words[at : at + 2] = []
    return redact.command((*words, *more))


def project_options(run: Run) -> str:
    """The options for the project of a run, with a leading space; empty for the kit's own."""
    words = project_words(run.info.plan)
    if not words:
        return ""
    return f" {redact.command(words)}"


def skips(run: Run) -> dict[str, tuple[str, ...]]:
    """Reason why something cannot run here -> the cases."""
    pairs = []
    for skip in run.info.skips:
        parts = [case_name(skip.stack, skip.layer)]
        if skip.workload:
            parts.append(skip.workload)
        if skip.size:
            parts.append(f"size {skip.size}")
        pairs.append((skip.reason, ", ".join(parts)))
    return _by_reason(pairs)


def known_limitations(run: Run) -> dict[str, tuple[str, ...]]:
    """Reason of a known limitation -> its checks, each with its case."""
    pairs = []
    for check in run.checks:
        if check.word == "known limitation" and check.known_limitation:
            pairs.append((check.known_limitation, f"{check.check} on {case_name(check.stack, check.layer)}"))
    return _by_reason(pairs)


def _by_reason(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Reason -> names, each once, from pairs of both."""
    by_reason: dict[str, dict[str, None]] = {}
    for reason, name in pairs:
        by_reason.setdefault(one_line(reason), {})[name] = None
    return {reason: tuple(names) for reason, names in by_reason.items()}


def notes(run: Run) -> tuple[str, ...]:
    """Notes on trust in the figures, as sentences."""
    info, plan, environment = run.info, run.info.plan, run.environment
    sentences = [sentence(note) for note in info.notes]
    if run.missing > 0 and not plan.capacity:
        sentences.append(f"Not finished: {plural(run.missing, 'trial')} left; {run.resume_command()}.")
    elif info.finished_at is None:
        sentences.append(f"Not finished; {run.resume_command()}.")
    if plan.until and info.ended_by:
        dropped = ""
        if info.dropped:
            dropped = f" {plural(len(info.dropped), 'case')} that cannot win dropped on the way."
        sentences.append(f"{ENDED[info.ended_by]}{dropped}")
    sentences += [*_trials(run), *_few_requests(run)]
    if not run.checks:
        sentences.append("The site was not verified.")
    if not info.notes and environment.cores < FEW_CORES:
        sentences.append(
            f"The load tool shares {plural(environment.cores, 'core')} with the servers: compare within this run only."
        )
    return tuple(sentences)


def _trials(run: Run) -> Iterable[str]:
    """Failed, discarded and repeated trials."""
    last = run.latest_of_all.values()
    failed = [trial for trial in last if trial.status == "failed"]
    discarded = [trial for trial in last if trial.status == "discarded"]
    if failed:
        why = dict.fromkeys(one_line(trial.reason) for trial in failed)
        yield f"{plural(len(failed), 'trial')} failed: {first_names(list(why))}."
    if discarded and not run.info.plan.capacity:
        guards = chain.from_iterable(map(discarded_by, discarded))
        names = dict.fromkeys(name for name, _ in guards)
        yield f"{plural(len(discarded), 'trial')} discarded ({', '.join(names)}): not used; {run.resume_command()}."
    if again := run.repeated:
        yield f"{plural(again, 'trial')} made again because of interference of other processes."


def _few_requests(run: Run) -> Iterable[str]:
    """Capacities with a percentile from too few requests."""
    limit = run.info.plan.capacity
    if not limit:
        return
    every = chain.from_iterable(rounds.values() for rounds in climbs(run.trials, limit).values())
    held = [climb.highest for climb in every if climb.highest]
    few = sum(not histogram.enough(trial.requests, limit.percent) for trial in held)
    if few:
        needed = f"{limit.percentile} needs {histogram.needed(limit.percent):,} requests"
        yield f"{needed}: {few:,} of {plural(len(held), 'rate')} that held had fewer; give a longer --duration."


def sentence(text: str) -> str:
    """The text in one line without secrets, with a capital and an end."""
    text = redact.redacted(one_line(text))
    text = text[:1].upper() + text[1:]
    if text.endswith((".", "!", "?")):
        return text
    return f"{text}."
