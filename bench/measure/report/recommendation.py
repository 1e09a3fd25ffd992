"""The recommendation and its reasons, as the first lines of page and terminal. Pure: every word comes from the
board."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bench.measure.records.records import options_of
from bench.measure.report import ref_comparison
from bench.measure.report.document import NO_TRIAL, CaseRow, Ranking
from bench.measure.report.ref_comparison import RefComparison, label_of
from bench.serve.catalog.names import NO_LAYER
from bench.words import (
    INCONCLUSIVE,
    LEADS,
    MIB,
    TIES,
    case_name,
    command_line,
    first_names,
    interval,
    joined,
    number,
    plural,
)

# Of a reason in the headline, which has at most 25 words.
MAX_WORDS = 20
# Before the command to give next.
NEXT = "Next: "


def recommended(
    board: Ranking, project: str = "", more: str = "", commits: Sequence[RefComparison] = (), unknown: str = ""
) -> Ranking:
    """The board with its sentences: recommendation, cost, safety, and the next command; or the verdict on commits.

    project  options that name the project
    more     the command that makes more rounds
    commits  comparisons of the board's commits
    unknown  planned comparisons without a verdict, in a sentence; or empty
    """
    # At a rate all commits serve the same, if each keeps it.
    if commits and not (board.kind == "rate" and all(item.verdict == "same" for item in commits)):
        lines = [ref_comparison.headline(commits, board.margin, _compared_figure(board))]
        if unknown:
            lines.append(unknown)
        if more and any(item.verdict == INCONCLUSIVE for item in commits):
            lines.append(f"{NEXT}{more}")
        return replace(board, answer=tuple(lines))
    headline = _headline(board)
    if board.verdict == INCONCLUSIVE and board.kind != "rate" and more:
        return replace(board, answer=(headline, f"{NEXT}{more}"))
    if board.best is None or board.kind == "rate" or board.verdict not in (LEADS, TIES):
        return replace(board, answer=(headline,))
    row = board.cases[board.best]
    lines = [headline, f"{_cost(row)} {_safety(row)}".strip(), _without_caching(board, row)]
    # The files are those of the project as it is, and not of a commit.
    if not label_of(row.stack):
        render = command_line("render", row.stack, *options_of(row.layer))
        lines.append(f"{NEXT}{render}{project} --output DIR")
    return replace(board, answer=tuple(filter(None, lines)))


def _together(rows: Sequence[CaseRow]) -> str:
    """`a, b and c with L` if all have the same layer, else each with its own."""
    layers = {row.layer for row in rows}
    if len(layers) > 1 or layers == {NO_LAYER}:
        return first_names([row.name for row in rows])
    return case_name(first_names([row.stack for row in rows]), layers.pop())


def _headline(board: Ranking) -> str:
    """The verdict in at most 25 words."""
    if board.best is None:
        reasons = [row.reason for row in board.cases if row.reason]
        # A case that was tried says more than the others, which a stop kept from their turn.
        reasons = [reason for reason in reasons if reason != NO_TRIAL] or reasons
        most = NO_TRIAL
        if reasons:
            most = max(reasons, key=reasons.count)
        words = most.split()
        if len(words) > MAX_WORDS:
            # Not a sentence with another end.
            return f"Not measured: {' '.join(words[:MAX_WORDS])} ..."
        return f"Not measured: {' '.join(words)}."
    if board.kind == "rate":
        return _at_a_rate(board)
    row, what = board.cases[board.best], _compared_figure(board)
    others = [other for other in board.cases if other is not row and other.ratio]
    if not others:
        return f"{row.name} is the only case with figures: there is nothing to compare it with."
    if board.verdict == LEADS:
        ratio = min((other.ratio for other in others if other.ratio), key=lambda each: each.estimate)
        ends = ""
        if ratio.low:
            ends = f", {interval(ratio.low, ratio.high)}"
        return f"{row.name} leads: {number(ratio.estimate)} times the {what} of the next{ends}."
    alike = [other for other in others if other.verdict]
    if board.verdict == TIES:
        memory = ""
        if row.memory_peak_bytes:
            memory = f"; it needs {_mib(row)}"
        return f"{row.name} ties with {_together(alike)} within {100 * board.margin:g} %{memory}."
    if board.rounds < 2 or not alike:
        return f"Inconclusive: {row.name} has the highest {what}, but one round proves no difference."
    return f"Inconclusive between {_together([row, *alike])}: {plural(board.rounds, 'round')} decide nothing yet."


def _compared_figure(board: Ranking) -> str:
    if board.kind == "capacity":
        return "capacity"
    return "requests/s"


def _at_a_rate(board: Ranking) -> str:
    """The cases that serve the requested rate: the question of a rate is how long responses take."""
    kept = [row.name for row in board.cases if row.verdict in (LEADS, TIES, INCONCLUSIVE)]
    every = sum(row.ratio is not None for row in board.cases)
    return f"{len(kept)} of {plural(every, 'case')} serve {board.load}: compare response times."


def _cost(row: CaseRow) -> str:
    """Memory and CPU time."""
    parts = []
    if row.memory_peak_bytes:
        parts.append(f"{_mib(row)} of memory")
    if row.cpu_seconds_per_1000_requests is not None:
        parts.append(f"{number(row.cpu_seconds_per_1000_requests)} CPU seconds per 1,000 requests")
    costs = ""
    if parts:
        costs = f"It costs {joined(parts)}."
    if row.deploy_lost:
        costs += f" A deploy loses {plural(round(row.deploy_lost), 'request')}."
    elif row.deploy_lost is not None:
        costs += " A deploy loses no request."
    return costs


def _safety(row: CaseRow) -> str:
    """The result of verify."""
    if row.checks is None:
        return "It was not verified."
    left = ""
    if row.checks.skipped:
        left = f"; {plural(row.checks.skipped, 'slower check')} skipped"
    return f"It passed {plural(row.checks.passed, 'check')}{left}."


def _without_caching(board: Ranking, best: CaseRow) -> str:
    """The best if nothing may be cached: cached pages are not for readers who are signed in."""
    if not best.caches_pages or not board.uncached:
        return ""
    first, *others = (board.cases[index].name for index in board.uncached)
    if board.uncached_verdict == LEADS:
        return f"If no page may be cached, {first} leads."
    if not others:
        return ""
    if board.uncached_verdict == TIES:
        return f"If no page may be cached, {first} ties with {first_names(others)}."
    return f"If no page may be cached, it is inconclusive between {first} and {first_names(others)}."


def _mib(row: CaseRow) -> str:
    return f"{number((row.memory_peak_bytes or 0) / MIB)} MiB"
