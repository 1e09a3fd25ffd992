"""The document of one or several folders of results. Reads records; its modules compute everything."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from bench.errors import BenchError
from bench.measure.records.folder import Run, is_faults, read_run
from bench.measure.report import facts, fault_rows, ranking, recommendation
from bench.measure.report.document import FORMAT, Document, FaultCase, HostRow, Ranking, RunFacts
from bench.measure.report.loads import median_of
from bench.measure.report.ref_comparison import compare_refs, no_verdict, not_compared
from bench.serve.catalog.names import NO_LIMIT
from bench.verify.hosts.host_costs import HostCosts
from bench.words import case_name, first_names, one_line, plural

FAULTS = "faults"  # the folder of faults beside a run, which its report includes
# Fields of HostCosts and of HostRow.
HOST_FIGURES = ("cpu_share", "memory_peak_bytes", "link_peak_share", "database_connections_peak", "requests_share")


def read(directories: Iterable[Path]) -> list[Run]:
    """The runs and the faults in these folders, each with the faults in its own folder `faults`.

    Raises BenchError in one line.
    """
    runs = []
    for directory in directories:
        runs.append(read_measured(directory))
        if runs[-1].info.plan.faults or not is_faults(directory / FAULTS):
            continue
        beside = read_run(directory / FAULTS)
        if beside.outcomes:
            runs.append(beside)
    return runs


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
    every_fault: list[FaultCase] = []
    for number, run in enumerate(every):
        every_fault += fault_rows.cases(run, number)
    boards: list[Ranking] = []
    hosts: list[HostRow] = []
    for number, run in enumerate(every):
        if not run.info.plan.faults:
            alike = [case for case in every_fault if _machine(every[case.run]) == _machine(run)]
            project, more = facts.project_options(run), facts.more_rounds(run)
            commits, not_judged = compare_refs(run), not_compared(run)
            for place in ranking.places(run):
                board = ranking.board(place, number, alike)
                compared = [item for item in commits if item.size == place.size]
                unknown = ""
                if lacking := [pair for pair in not_judged if pair[0].size == place.size]:
                    unknown = facts.sentence(no_verdict(lacking))
                boards.append(recommendation.recommended(board, project, more, compared, unknown))
            hosts += _hosts(run)
    names = [run.directory.absolute().name for run in every]
    if len({*names}) < len(names):
        names = ["/".join(run.directory.absolute().parts[-2:]) for run in every]
    runs = tuple(_facts(run, page, name) for run, name in zip(every, names, strict=True))
    return Document(
        format=FORMAT,
        title=_title(boards, every_fault),
        answer=_first_lines(runs, boards, every_fault),
        runs=runs,
        boards=tuple(boards),
        faults=tuple(every_fault),
        hosts=tuple(hosts),
        warning=_warning([run for run in every if not run.info.plan.faults]),
    )


def _warning(runs: Sequence[Run]) -> str:
    """The advice to install a web server, if none was usable in any of the runs; otherwise empty."""
    missing = [run.environment.missing_web_server for run in runs]
    if not missing or not all(missing):
        return ""
    return (
        "No usable web server is installed, to terminate TLS and absorb slow clients. Before you choose, install one "
        f"and compare again, such as {one_line(missing[0])}."
    )


def _machine(run: Run) -> tuple[str | None, int]:
    return run.environment.cpu_model, run.environment.cores


def _facts(run: Run, page: Path, name: str) -> RunFacts:
    directory = Path(os.path.relpath(run.directory.absolute(), page.absolute().parent)).as_posix()
    info = run.info
    if not info.plan.faults:
        texts = facts.of_run(run), facts.skips(run), facts.known_limitations(run), facts.notes(run)
        return RunFacts(directory, name, info.started_at, *texts)
    cases = fault_rows.cases(run, 0)
    skipped, limited = fault_rows.reasons(cases, "skipped"), fault_rows.reasons(cases, "known limitation")
    notes = [facts.sentence(note) for note in info.notes]
    if not info.finished_at:
        notes.append("Not finished: it shows the faults made so far.")
    return RunFacts(directory, name, info.started_at, facts.of_faults(run), skipped, limited, tuple(notes))


def _title(boards: Sequence[Ranking], every_fault: Sequence[FaultCase]) -> str:
    """`6 cases on home and login`."""
    if not boards:
        return f"Effects on visitors: {plural(len(every_fault), 'case')}"
    rows = chain.from_iterable(board.cases for board in boards)
    cases = {(row.stack, row.layer) for row in rows}
    workloads = dict.fromkeys(chain.from_iterable(board.workloads for board in boards))
    return f"{plural(len(cases), 'case')} on {first_names(list(workloads))}"


def _first_lines(
    runs: Sequence[RunFacts], boards: Sequence[Ranking], every_fault: Sequence[FaultCase]
) -> tuple[str, ...]:
    """The first lines: of the only board, or the headline of each."""
    if len(boards) == 1:
        return boards[0].answer
    if boards:
        return tuple(f"{place}: {board.answer[0]}" for place, board in zip(places(runs, boards), boards, strict=True))
    bad: list[str] = []
    tally = Counter[str]()
    for case in every_fault:
        outcomes = [row.outcome for row in case.faults]
        if "failed" in outcomes:
            bad.append(case_name(case.stack, case.layer))
        tally.update(outcomes)
    if bad:
        return (f"Not as expected on {first_names(list(dict.fromkeys(bad)))}.",)
    discarded = ""
    if tally["discarded"]:
        discarded = f", {tally['discarded']:,} discarded"
    return (
        f"{plural(tally['passed'] + tally['known limitation'], 'fault')} as expected or known limitations{discarded}.",
    )


def places(runs: Sequence[RunFacts], boards: Sequence[Ranking]) -> list[str]:
    """The attributes that tell boards apart: the run's name, the size and the database, if there are several."""
    several_runs = len({board.run for board in boards}) > 1
    several_sizes = len({board.size for board in boards}) > 1
    several_databases = len({board.database for board in boards}) > 1
    labels = []
    for board in boards:
        parts = []
        if several_runs:
            parts = [runs[board.run].name]
        if several_sizes or board.size != NO_LIMIT:
            parts.append(f"size {board.size}")
        if several_databases:
            parts.append(board.database)
        labels.append(", ".join(parts))
    return labels


# ------------------------------------------------------------------------------------------------ hosts


def _hosts(run: Run) -> Iterable[HostRow]:
    """Costs of each host under each load, medians of the rounds; empty for a run on one host."""
    every_cost: dict[tuple[str, str, str], list[HostCosts]] = {}
    for trial in run.latest.values():
        if trial.status == "ok":
            for name, costs in (trial.condition.hosts or {}).items():
                key = (case_name(trial.stack, trial.layer), trial.workload, name)
                every_cost.setdefault(key, []).append(costs)
    for (case, workload, host), every in every_cost.items():
        yield HostRow(case, workload, host, **{figure: median_of(every, figure) for figure in HOST_FIGURES})
