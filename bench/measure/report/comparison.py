"""Compare two runs case by case: requests/s of A and B, their ratio, and a verdict. Pure.

The noise of a run is pooled over its cases (bench.measure.stats). Rounds of two runs are not paired, so faster and
slower rounds count as noise, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from bench.columns import columns, paragraph
from bench.errors import BenchError
from bench.measure.records.capacity import climbs
from bench.measure.records.folder import Run
from bench.measure.records.trials import Trial
from bench.measure.report.redact import redacted
from bench.measure.stats import Table
from bench.words import INCONCLUSIVE, LEADS, TIES, interval_text, number, one_line, plural, setting_words, size

Verdict = Literal["slower", "faster", "same", "inconclusive"]
MAX_CONFIGS_SHOWN = 3
MEMORY_MARGIN = 0.05  # the same machine reports a little more or less memory from boot to boot


class Key(NamedTuple):
    """A case at a level."""

    stack: str
    layer: str
    workload: str
    size: str
    level: int
    database: str


@dataclass(frozen=True)
class CaseComparison:
    """One case at one level in both runs.

    ratio_b_to_a  with the ends of its 95 % interval: 0 and None if the noise is unknown
    of_b          the verdict on B
    """

    key: Key
    a_requests_per_second: float
    b_requests_per_second: float
    ratio_b_to_a: float
    low: float
    high: float | None
    of_b: Verdict

    @property
    def best(self) -> str | None:
        """The faster run, A or B, if different."""
        return {"slower": "A", "faster": "B"}.get(self.of_b)

    @property
    def verdict(self) -> str:
        """`leads`: the difference exceeds the margin. `ties`: no larger difference. `inconclusive`: unknown."""
        return {"same": TIES, "inconclusive": INCONCLUSIVE}.get(self.of_b, LEADS)

    def record(self) -> dict[str, object]:
        """The comparison for JSON."""
        figures = vars(self) | {"verdict": self.verdict, "best": self.best}
        del figures["key"], figures["of_b"]
        return self.key._asdict() | figures


@dataclass(frozen=True)
class RunComparison:
    """Two runs side by side, and differences between their environments."""

    cases: tuple[CaseComparison, ...]
    only_before: tuple[Key, ...]
    only_after: tuple[Key, ...]
    warnings: tuple[str, ...]
    margin: float

    def record(self) -> dict[str, object]:
        """The comparison for JSON."""
        return {
            "margin": self.margin,
            "warnings": list(self.warnings),
            "cases": [case.record() for case in self.cases],
            "only_a": [key._asdict() for key in self.only_before],
            "only_b": [key._asdict() for key in self.only_after],
        }


def compare(before: Run, after: Run) -> RunComparison:
    """The cases measured by both runs. Raises BenchError if none."""
    # A run has one. The same cases on another are still worth comparing, with a warning.
    databases = {before.info.plan.database, after.info.plan.database}
    database = "any"
    if len(databases) == 1:
        database = databases.pop()
    first, second = tables(before, database), tables(after, database)
    shared = [key for key in first if key in second]
    if not shared:
        raise BenchError(
            f"{before.directory} and {after.directory} share no measured case; "
            "compare runs of the same stacks, layers, workloads and levels"
        )
    margin = max(before.info.plan.margin, after.info.plan.margin)
    cases = []
    for key in shared:
        a, b = first[key].alone(key), second[key].alone(key)
        ratio, low, high = (b - a).ratio()
        cases.append(CaseComparison(key, a.rate, b.rate, ratio, low, finite(high), verdict(low, high, margin)))
    return RunComparison(
        cases=tuple(cases),
        only_before=tuple(key for key in first if key not in second),
        only_after=tuple(key for key in second if key not in first),
        warnings=tuple(warnings(before, after)),
        margin=margin,
    )


def finite(value: float) -> float | None:
    """A figure that may be unbounded, for JSON: None for infinity."""
    if math.isinf(value):
        return None
    return value


def verdict(low: float, high: float, margin: float) -> Verdict:
    """The verdict on the second of two rates, from the interval of its ratio to the first: `slower` and `faster` by
    more than the margin, `same` within the margin."""
    if high < 1 / (1 + margin):
        return "slower"
    if low > 1 + margin:
        return "faster"
    if low >= 1 / (1 + margin) and high <= 1 + margin:
        return "same"
    return "inconclusive"


def tables(run: Run, database: str) -> dict[Key, Table[Key]]:
    """Case -> the rates of all cases with its workload, size and level, itself included.

    Without wrong responses, and in the order of the plan. `database` replaces the database's name.
    """
    order = {case.case_id: place for place, case in enumerate(run.info.cases)}
    wrong = {(check.stack, check.layer) for check in run.checks if not check.ok}
    rates: dict[Key, dict[int, float]] = {}
    steps: dict[Key, float] = {}
    for trial, step in sorted(_trials(run), key=lambda item: order.get(item[0].case_id, len(order))):
        key = key_of(run, trial, database)
        if trial.throughput and key[:2] not in wrong:
            rates.setdefault(key, {})[trial.round] = trial.throughput
            steps[key] = max(steps.get(key, 1.0), step)
    alike: dict[tuple[object, ...], dict[Key, dict[int, float]]] = {}
    for key, rounds in rates.items():
        alike.setdefault(key[2:], {})[key] = rounds
    tables = {where: Table(case_rates, steps) for where, case_rates in alike.items()}
    return {key: tables[key[2:]] for key in rates}


def key_of(run: Run, trial: Trial, database: str) -> Key:
    """The case and level of a trial; a staircase has all of its levels together."""
    level = trial.level
    if run.info.plan.capacity:
        level = 0
    return Key(trial.stack, trial.layer, trial.workload, trial.size, level, database)


def _trials(run: Run) -> Iterable[tuple[Trial, float]]:
    """The trials to compare, and the upper bound of each case's requests/s as a multiple (`Table`)."""
    limit = run.info.plan.capacity
    if not limit:
        for trial in run.latest.values():
            if trial.status == "ok" and trial.mode == run.info.plan.mode:
                yield trial, 1.0
        return
    for rounds in climbs(run.trials, limit).values():
        for climb in rounds.values():
            if climb.highest:
                yield climb.highest, climb.step


def warnings(before: Run, after: Run) -> Iterable[str]:
    """One line for each difference between the environments that changes figures, or between rendered files."""
    first, second = _conditions(before), _conditions(after)
    sizes = before.environment.memory_bytes, after.environment.memory_bytes
    if max(sizes) - min(sizes) <= MEMORY_MARGIN * max(sizes):
        second["memory sizes"] = first["memory sizes"]
    for what, value in first.items():
        other = second[what]
        if value != other:
            yield f"{what} differ: {_shown(value)} in A, {_shown(other)} in B"
    yield from _versions("packages", before.environment.packages, after.environment.packages)
    yield from _versions("programs", before.environment.programs, after.environment.programs)
    yield from _configs(before.environment.configs or {}, after.environment.configs or {})


def _conditions(run: Run) -> dict[str, object]:
    """Conditions that change figures, by name."""
    environment, plan = run.environment, run.info.plan
    return {
        "CPUs": environment.cpu_model,
        "cores": environment.cores,
        "memory sizes": size(environment.memory_bytes),
        "operating systems": environment.os,
        "kernels": environment.kernel,
        "Python versions": environment.python,
        "governors": environment.governor,
        "limits": _pairs(environment.limits),
        "CPU cores of load, stack and services": _pairs(environment.affinity),
        "load tools": f"{environment.load_tool.name} {environment.load_tool.version or ''}".strip(),
        "modes": plan.mode,
        "databases": plan.database,
        "rows in the database": plan.rows_total,
        "seeds of the rows": environment.rows_seed,
        "seconds of load": plan.duration_s,
        "changed values": _listed(setting_words(plan.changes)),
        "project environments": _listed(setting_words(plan.env)),
    }


def _pairs(values: Mapping[str, object] | None) -> str | None:
    if values is None:
        return None
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _configs(before: dict[str, str], after: dict[str, str]) -> Iterable[str]:
    """Configuration files rendered by both runs and different."""
    differing = [name for name in before if name in after and before[name] != after[name]]
    if differing:
        more = ""
        if len(differing) > MAX_CONFIGS_SHOWN:
            more = f" and {len(differing) - MAX_CONFIGS_SHOWN} more"
        yield one_line(f"rendered configurations differ: {', '.join(differing[:MAX_CONFIGS_SHOWN])}{more}")


def _shown(value: object) -> str:
    if value is None:
        return "not known"
    if isinstance(value, (int, float)):
        if isinstance(value, int):
            return f"{value:,}"
        return f"{value:g}"
    return one_line(value)


def _listed(values: Sequence[str]) -> str:
    return ", ".join(redacted(value) for value in values) or "none"


def _versions(what: str, before: dict[str, str], after: dict[str, str]) -> Iterable[str]:
    """One line for all differing versions of programs in both runs."""
    differing = []
    for name, version in before.items():
        if after.get(name, version) != version:
            differing.append(f"{name} {version} / {after[name]}")
    if differing:
        yield one_line(f"{what} differ (A / B): {', '.join(differing)}")


def render(comparison: RunComparison, before: Path, after: Path, width: int) -> list[str]:
    """The comparison as lines of text, within a width if no name or path is wider."""
    cases = comparison.cases
    varying = _varying([item.key for item in cases])
    rows = [("case", "A", "B", "B / A", "95 % confidence", "verdict")]
    for item in cases:
        rates = number(item.a_requests_per_second), number(item.b_requests_per_second), number(item.ratio_b_to_a)
        verdict = item.verdict
        if item.best:
            verdict = f"{item.best} leads"
        rows.append((_name(item.key, varying), *rates, ratio_interval(item.low, item.high), verdict))
    lines = [f"A = {before}", f"B = {after}", "Figures are requests/s.", "", *_table(rows, width), ""]
    counts = Counter(item.best or item.verdict for item in cases)
    texts = [
        f"{plural(len(cases), 'case')} in both runs: B leads in {counts['B']}, A in {counts['A']}, "
        f"{counts[TIES]} tie within the margin of {comparison.margin:.0%}, {counts[INCONCLUSIVE]} inconclusive; "
        "each by itself"
    ]
    for name, keys in (("A", comparison.only_before), ("B", comparison.only_after)):
        if keys:
            names = ", ".join(_name(key, set(range(len(key)))) for key in keys)
            texts.append(f"measured in {name} only: {names}")
    for text in texts:
        lines += paragraph(text, width, hanging="  ")
    return lines


def ratio_interval(low: float, high: float | None) -> str:
    """The interval of a ratio in words; a low end of 0 is unknown noise."""
    if not low:
        return "not known"
    return interval_text(low, high)


def _varying(keys: Sequence[Key]) -> set[int]:
    """Indexes of the key to print: stack, layer and workload always, the others if they differ."""
    different = {0, 1, 2}
    for index, values in enumerate(zip(*keys, strict=True)):
        if len(set(values)) > 1:
            different.add(index)
    return different


def _name(key: Key, varying: set[int]) -> str:
    return "~".join(one_line(part) for index, part in enumerate(key) if index in varying)


def _table(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Columns; if too wide, each case has a line above its figures."""
    lines = columns(rows)
    if max(map(len, lines)) <= width:
        return lines
    figures = columns([row[1:] for row in rows])
    lines = []
    for row, line in zip(rows, figures, strict=True):
        lines += [row[0], f"  {line}"]
    return lines
