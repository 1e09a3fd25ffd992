"""What a deployment costs: memory, CPU time, database connections, and what its visitors lose. Pure."""

from __future__ import annotations

from bench.figures.words import joined, plural
from bench.report.choice import Choice, between
from bench.report.faults.model import Made, arrange, lost_by_deploy, stopped_by
from bench.report.findings import quoted
from bench.report.model import CaseRow
from bench.report.numbers import MIB
from bench.report.redact import redacted
from bench.results.records import NO_LAYER, options_of


def sentence(choice: Choice, *, short: bool = False) -> str:
    """The costs of the chosen deployment, with those of its stack without a layer; `short` says what it uses alone."""
    parts = used(choice.rows)
    if not parts:
        return "Memory and CPU time were not measured."
    bare = choice.question.rows((choice.chosen[0], NO_LAYER)) if choice.chosen[1] != NO_LAYER else []
    if short:
        return f"It uses {joined(parts)}."
    without = used(bare)
    against = f"; without a layer {joined(without)}" if without else ""
    texts = [f"It uses {joined(parts)}{against}.", connections(choice.rows), visitors(choice)]
    return " ".join(filter(None, texts))


def used(rows: list[CaseRow]) -> list[str]:
    """Memory and CPU time over the workloads, in words."""
    memory = [row.memory_total.median / MIB for row in rows if row.memory_total]
    cpu = [row.cpu_total.median for row in rows if row.cpu_total]
    parts = [f"{between(memory)} MiB of peak memory"] if memory else []
    return parts + ([f"{between(cpu)} CPU seconds per 1,000 requests"] if cpu else [])


def connections(rows: list[CaseRow]) -> str:
    """How many connections of the database it held at most; empty where there are none to count."""
    trials = [trial for row in rows for trial in row.ok.values()]
    peaks = [trial.database_connections_peak for trial in trials if trial.database_connections_peak is not None]
    if not peaks:
        return ""
    limits = [trial.database_connections_limit for trial in trials if trial.database_connections_limit]
    of = f" of the {min(limits):,} that the database allows" if limits else ""
    return f"It held at most {plural(max(peaks), 'database connection')}{of}."


def visitors(choice: Choice) -> str:
    """What stops it and what a deploy loses, from faults made beside the run; the command that finds out without."""
    made = _made(choice)
    if made:
        return " ".join(filter(None, (stopped_by(made), lost_by_deploy(made))))
    stack, layer = choice.chosen
    project = choice.report.run.info.plan.project
    setting = choice.question.panels[0].setting
    options = options_of(layer, setting.size)
    options += f" --database {setting.database}" if setting.database != "sqlite" else ""
    options += f" --project {redacted(project)}" if project else ""
    command = quoted(f"python -m bench faults {stack}{options} --to {choice.report.run.directory}/faults")
    return f"What a deploy loses and how many slow clients stop it was not measured: {command}."


def _made(choice: Choice) -> dict[str, Made]:
    """Fault -> what was made of it on the chosen deployment."""
    faults, setting = choice.report.faults, choice.question.panels[0].setting
    if faults is None:
        return {}
    every = arrange(faults).made
    of_stack = {key: made for key, made in every.items() if (key.stack, key.layer) == choice.chosen}
    same = [made for key, made in of_stack.items() if (key.size, key.database) == (setting.size, setting.database)]
    return (same or list(of_stack.values()) or [{}])[0]
