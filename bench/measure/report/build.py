"""The document of one or several folders of results. Reads records; its modules compute everything."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.errors import BenchError
from bench.measure.records.folder import Run, is_faults, read_run
from bench.measure.report import answer, facts, ranking, visitors
from bench.measure.report.document import FORMAT, Document, FaultCase, Host, Ranking, RunFacts
from bench.measure.report.loads import median_or_none
from bench.serve.catalog.names import NO_LIMIT
from bench.verify.hosts.costs import HostCosts
from bench.words import case_name, first_names, one_line, plural

FAULTS = "faults"  # the folder of faults beside a run, which its report includes


def read(directories: Iterable[Path]) -> list[Run]:
    """The runs and the faults in these folders, each with the faults in its own folder `faults`.

    Raises BenchError in one line.
    """
    found = []
    for directory in directories:
        found.append(read_measured(directory))
        if not found[-1].info.plan.faults and is_faults(beside := directory / FAULTS):
            found += [run for run in [read_run(beside)] if run.outcomes]
    return found


def read_measured(directory: Path) -> Run:
    """The run in `directory`, which must hold at least one trial or fault. Raises BenchError."""
    run = read_run(directory)
    if run.info.plan.faults and not run.outcomes:
        raise BenchError(f"{directory}: no fault was made; go on with `{run.resume_command()}`")
    if not run.info.plan.faults and not run.trials:
        raise BenchError(f"{directory}: the run has no trials; finish it with `{run.resume_command()}`")
    return run


def document(every: Sequence[Run], page: Path) -> Document:
    """The report of runs and faults; names of files are relative to the page."""
    every_fault = [case for number, run in enumerate(every) for case in visitors.cases(run, number)]
    made: list[Ranking] = []
    hosts: list[Host] = []
    for number, run in enumerate(every):
        if not run.info.plan.faults:
            alike = [case for case in every_fault if _same_machine(run, every[case.run])]
            project, more = facts.project_options(run), facts.more_rounds(run)
            for place in ranking.places(run):
                made.append(answer.answered(ranking.board(place, number, alike), project, more))
            hosts += _hosts(run)
    names = [run.directory.absolute().name for run in every]
    if len({*names}) < len(names):
        names = ["/".join(run.directory.absolute().parts[-2:]) for run in every]
    runs = tuple(_facts(run, page, name) for run, name in zip(every, names, strict=True))
    return Document(
        format=FORMAT,
        title=_title(made, every_fault),
        answer=_answer(runs, made, every_fault),
        runs=runs,
        boards=tuple(made),
        faults=tuple(every_fault),
        hosts=tuple(hosts),
    )


def _same_machine(first: Run, second: Run) -> bool:
    a, b = first.environment, second.environment
    return (a.cpu_model, a.cores) == (b.cpu_model, b.cores)


def _facts(run: Run, page: Path, name: str) -> RunFacts:
    directory = Path(os.path.relpath(run.directory.absolute(), page.absolute().parent)).as_posix()
    info = run.info
    if not info.plan.faults:
        found = facts.of_run(run), facts.skips(run), facts.declared(run), facts.notes(run)
        return RunFacts(directory, name, info.started_at, *found)
    cases = visitors.cases(run, 0)
    skipped, declared = (
        {one_line(key): tuple(names) for key, names in visitors.reasons(cases, outcome).items()}
        for outcome in ("skipped", "known limitation")
    )
    notes = () if info.finished_at else ("Not finished: it shows the faults made so far.",)
    return RunFacts(directory, name, info.started_at, facts.of_faults(run), skipped, declared, notes)


def _title(made: Sequence[Ranking], every_fault: Sequence[FaultCase]) -> str:
    """`6 cases on home and login`."""
    cases = {(row.stack, row.layer) for board in made for row in board.cases}
    workloads = list(dict.fromkeys(name for board in made for name in board.workloads))
    if made:
        return f"{plural(len(cases), 'case')} on {first_names(workloads)}"
    return f"What visitors notice on {plural(len(every_fault), 'case')} when something breaks or is replaced"


def _answer(runs: Sequence[RunFacts], made: Sequence[Ranking], every_fault: Sequence[FaultCase]) -> tuple[str, ...]:
    """The first lines: of the only board, or the headline of each."""
    if len(made) == 1:
        return made[0].answer
    if made:
        return tuple(f"{place}: {board.answer[0]}" for place, board in zip(places(runs, made), made, strict=True))
    bad = [
        case_name(case.stack, case.layer) for case in every_fault if any(row.outcome == "FAIL" for row in case.faults)
    ]
    if bad:
        return (f"Not as expected on {first_names(list(dict.fromkeys(bad)))}.",)
    found = Counter(row.outcome for case in every_fault for row in case.faults)
    discarded = f", {found['DISCARDED']:,} discarded" if found["DISCARDED"] else ""
    return (
        f"{plural(found['pass'] + found['known limitation'], 'fault')} as expected or known limitations{discarded}.",
    )


def places(runs: Sequence[RunFacts], made: Sequence[Ranking]) -> list[str]:
    """The attributes that tell boards apart: the run's name, the size and the database, if there are several."""
    several = {field: len({getattr(board, field) for board in made}) > 1 for field in ("run", "size", "database")}
    found = []
    for board in made:
        parts = [runs[board.run].name] if several["run"] else []
        parts += [f"size {board.size}"] if several["size"] or board.size != NO_LIMIT else []
        parts += [board.database] if several["database"] else []
        found.append(", ".join(parts))
    return found


# ------------------------------------------------------------------------------------------------ hosts


def _hosts(run: Run) -> Iterable[Host]:
    """Costs of each host under each load, medians of the rounds; empty for a run on one host."""
    found: dict[tuple[str, str, str], list[HostCosts]] = {}
    for trial in run.latest.values():
        if trial.status == "ok":
            for name, costs in (trial.condition.hosts or {}).items():
                key = (case_name(trial.stack, trial.layer), trial.workload, name)
                found.setdefault(key, []).append(costs)
    fields = ("cpu_share", "memory_peak_bytes", "link_peak_share", "database_connections_peak", "requests_share")
    for (case, workload, name), every in found.items():
        yield Host(
            case, workload, name, *(median_or_none(getattr(costs, field) for costs in every) for field in fields)
        )
