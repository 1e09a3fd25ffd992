"""Commits of a project in one run: whether the others are slower than the first. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.columns import columns
from bench.measure.records.capacity import overloaded
from bench.measure.records.folder import Run
from bench.measure.records.trials import INTERFERENCE, Trial, discarded_by
from bench.measure.report.comparison import Key, Verdict, finite, key_of, ratio_interval, tables, verdict
from bench.measure.report.loads import median_or_none
from bench.measure.stats import Table
from bench.serve.catalog.names import NO_LIMIT
from bench.words import first_names, interval, joined, number

# Guards whose findings another attempt may not have.
PASSING = {INTERFERENCE, "drift"}
# Averages of queries a request with a smaller difference count as equal.
SAME_QUERIES = 0.01


@dataclass(frozen=True)
class RefComparison:
    """A commit beside the first one, under the same stack, layer, workload, size and level.

    case             the common attributes, in words
    size             the resource limit
    first, other     labels of the commits
    ratio            requests/s of the other as a multiple of the first's; low, high: its 95 % interval; high: None if
                     unbounded
    verdict          slower or faster: by more than the margin, proven; same: within the margin; inconclusive: unknown
    queries          database queries a request of both; None if not counted
    page_bytes       bytes a response of both
    """

    case: str
    size: str
    first: str
    other: str
    first_rate: float
    other_rate: float
    ratio: float
    low: float
    high: float | None
    verdict: Verdict
    queries: tuple[float | None, float | None]
    page_bytes: tuple[float | None, float | None]

    @property
    def more_queries(self) -> bool:
        """True if the number of queries differs, which needs no statistics."""
        one, two = self.queries
        return one is not None and two is not None and abs(two - one) >= SAME_QUERIES


def compare_refs(run: Run) -> tuple[RefComparison, ...]:
    """Each commit beside the first one, in each common case; empty for a run without commits."""
    labels = list(run.info.plan.refs or {})
    if len(labels) < 2:
        return ()
    by_case = tables(run, run.info.plan.database)
    comparisons = []
    for key, table in by_case.items():
        if label_of(key.stack) != labels[0]:
            continue
        for label in labels[1:]:
            other = key._replace(stack=with_label(key.stack, label))
            if other in by_case:
                comparisons.append(_compared(run, table, key, other, label))
    return tuple(comparisons)


def not_compared(run: Run) -> list[tuple[Key, Key]]:
    """The planned comparisons that lack trusted figures of one of their commits: the first commit, and the other."""
    plan = run.info.plan
    first, *others = plan.refs or {"": ""}
    by_case = tables(run, plan.database)
    planned: dict[Key, None] = {}
    for case, level in itertools.product(run.info.cases, plan.levels or (0,)):
        stack = with_label(case.stack, first)
        planned[Key(stack, case.layer, case.workload, case.size, level, plan.database)] = None
    lacking = []
    for key, label in itertools.product(planned, others):
        other = key._replace(stack=with_label(key.stack, label))
        if key not in by_case or other not in by_case:
            lacking.append((key, other))
    return lacking


def no_verdict(lacking: Sequence[tuple[Key, Key]]) -> str:
    """The comparisons without a verdict, in words, with the reason."""
    names = [comparison_words(first, other) for first, other in lacking]
    return f"no verdict on {first_names(names)}: a commit has no trusted figures"


def comparison_words(first: Key, other: Key) -> str:
    """A comparison in words: the case, and the other commit."""
    return f"{_case_words(first)}: {label_of(other.stack)}"


def next_step(run: Run, lacking: Sequence[tuple[Key, Key]]) -> str:
    """The remedy for these missing comparisons: to resume, if another attempt may give the figures."""
    plan, missing = run.info.plan, {*itertools.chain.from_iterable(lacking)}
    for skip in run.info.skips:
        if any((skip.stack, skip.layer) == key[:2] and skip.size in (key.size, None) for key in missing):
            return f"{label_of(skip.stack)} cannot run here: {skip.reason}"
    for trial in run.latest.values():
        key = key_of(run, trial, plan.database)
        lasting = [f"{name}: {text}" for name, text in discarded_by(trial) if name not in PASSING]
        if trial.status == "discarded" and lasting and key in missing and not (plan.capacity and overloaded(trial)):
            option = "--rate"
            if plan.mode == "closed":
                option = "--connections"
            reason = "; ".join(lasting)
            return f"{reason}; resuming would discard it again: change the load ({option}), or its bound (--guard)"
    return f"resume on a quiet machine with: {run.resume_command()}"


def label_of(stack: str) -> str:
    """The label of the commit in a stack's name; empty without one."""
    values = stack.partition("@")[2].split(",")
    return next((value.removeprefix("ref=") for value in values if value.startswith("ref=")), "")


def with_label(stack: str, label: str) -> str:
    """The name of the same stack with another commit; without any for an empty label."""
    plain, _, values = stack.partition("@")
    kept = [value for value in values.split(",") if value and not value.startswith("ref=")]
    if label:
        kept.append(f"ref={label}")
    if kept:
        return f"{plain}@{','.join(kept)}"
    return plain


def _case_words(key: Key) -> str:
    """The attributes that commits have in common."""
    words = [with_label(key.stack, ""), key.layer, key.workload]
    if key.size != NO_LIMIT:
        words.append(key.size)
    return " ".join([*words, str(key.level)])


def _compared(run: Run, table: Table[Key], key: Key, other: Key, label: str) -> RefComparison:
    ratio, low, high = table.ratio(other, key)
    return RefComparison(
        case=_case_words(key),
        size=key.size,
        first=label_of(key.stack),
        other=label,
        first_rate=table.rate(key),
        other_rate=table.rate(other),
        ratio=ratio,
        low=low,
        high=finite(high),
        verdict=verdict(low, high, run.info.plan.margin),
        queries=(_median(run, key, _queries), _median(run, other, _queries)),
        page_bytes=(_median(run, key, _bytes), _median(run, other, _bytes)),
    )


def _queries(trial: Trial) -> float | None:
    if not trial.condition:
        return None
    return trial.condition.queries_per_request


def _bytes(trial: Trial) -> float | None:
    figures = trial.figures
    if figures is None or not figures.bytes_per_second or not figures.requests_per_second:
        return None
    return figures.bytes_per_second / figures.requests_per_second


def _median(run: Run, key: Key, of: Callable[[Trial], float | None]) -> float | None:
    figures = []
    for trial in run.latest.values():
        if (trial.stack, trial.layer, trial.workload, trial.size, trial.level) == key[:5]:
            figures.append(of(trial))
    return median_or_none(figures)


def render(comparisons: Sequence[RefComparison], margin: float) -> list[str]:
    """The comparisons as lines of text."""
    if not comparisons:
        return []
    rows = [("case", "commits", "requests/s", "ratio", "95 % confidence", "queries", "bytes", "verdict")]
    rows += [_row(item) for item in comparisons]
    lines = ["", *columns(rows), ""]
    for item in comparisons:
        if item.more_queries:
            one, two = item.queries
            lines.append(f"{item.case}: {item.other} makes {two:g} queries a request, {item.first} {one:g}")
    lines.append(f"slower and faster: by more than {margin:.0%}, with 95 % confidence in each row")
    return lines


def headline(comparisons: Sequence[RefComparison], margin: float, what: str = "requests/s") -> str:
    """The verdicts in one sentence; `what` is compared."""
    if len(comparisons) == 1:
        return _of_one(comparisons[0], margin, what)
    by_commit: dict[str, list[Verdict]] = {}
    for item in comparisons:
        by_commit.setdefault(item.other, []).append(item.verdict)
    parts = [f"{other} is {_counted(verdicts)}" for other, verdicts in by_commit.items()]
    return f"Compared with {comparisons[0].first}, {'; '.join(parts)}."


def _of_one(item: RefComparison, margin: float, what: str) -> str:
    if not item.low and item.high is None:
        return f"Inconclusive: the rounds prove no difference between {item.first} and {item.other}."
    certain = interval(item.low, item.high)
    if item.verdict == "inconclusive":
        return f"Inconclusive: {item.other} has {number(item.ratio)} times the {what} of {item.first}, {certain}."
    verdict = f"{item.other} is {item.verdict} than {item.first}"
    if item.verdict == "same":
        verdict = f"{item.other} is as fast as {item.first} within {100 * margin:g} %"
    return f"{verdict}: {number(item.ratio)} times the {what}, {certain}."


def _counted(verdicts: Sequence[Verdict]) -> str:
    """The verdicts on a commit with their numbers: `slower`, `slower in 1 of 3 cases and as fast in 2`."""
    words = {"slower": "slower", "faster": "faster", "same": "as fast", "inconclusive": "inconclusive"}
    if len(set(verdicts)) == 1:
        return words[verdicts[0]]
    parts = [f"{word} in {verdicts.count(verdict)}" for verdict, word in words.items() if verdict in verdicts]
    parts[0] += f" of {len(verdicts)} cases"
    return joined(parts)


def figure(value: float | None, form: str) -> str:
    """A figure as text; `?` if not counted."""
    if value is None:
        return "?"
    return format(value, form)


def _row(item: RefComparison) -> tuple[str, str, str, str, str, str, str, str]:
    return (
        item.case,
        f"{item.first} -> {item.other}",
        f"{number(item.first_rate)} -> {number(item.other_rate)}",
        number(item.ratio),
        ratio_interval(item.low, item.high),
        " -> ".join(figure(value, "g") for value in item.queries),
        " -> ".join(figure(value, ",.0f") for value in item.page_bytes),
        item.verdict,
    )
