"""Compare two runs case by case: medians of A and B, their ratio, and a verdict on B. Pure.

B is faster or slower when the whole 95 % confidence interval of the ratio lies beyond the margin. Otherwise the
comparison is inconclusive. The noise of a run comes from all of its cases, as in a report.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.errors import BenchError
from bench.figures.columns import paragraph
from bench.figures.noise import Noise, noise_of
from bench.figures.ratios import FASTER, INCONCLUSIVE, SLOWER, Ratio, between, logarithms
from bench.figures.stats import Estimate, estimate
from bench.figures.words import plural
from bench.report.arrange import arrange
from bench.report.numbers import median, one_line, range_of, size, times
from bench.report.redact import redacted
from bench.results.folder import Run

MAX_CONFIGS_SHOWN = 3
MEMORY_MARGIN = 0.05  # the same machine reports a little more or less memory from boot to boot

Key = tuple[str, str, str, str, int, str]  # stack, layer, workload, size, level, database
Rates = dict[Key, dict[int, float]]  # case -> round -> requests/s


@dataclass(frozen=True)
class CaseComparison:
    """One case at one level in both runs."""

    key: Key
    before: Estimate | None
    after: Estimate | None
    compared: Ratio | None  # None when a side measured nothing above zero

    @property
    def ratio(self) -> float | None:
        """Median of B divided by median of A; None when a side measured nothing above zero."""
        return self.compared.ratio if self.compared else None

    @property
    def verdict(self) -> str:
        """`faster`, `slower` or `inconclusive`: B against A."""
        return self.compared.verdict if self.compared else INCONCLUSIVE


@dataclass(frozen=True)
class RunComparison:
    """Two runs side by side, and what differs between their environments."""

    cases: tuple[CaseComparison, ...]
    only_before: tuple[Key, ...]
    only_after: tuple[Key, ...]
    warnings: tuple[str, ...]
    margin: float


def compare(before: Run, after: Run) -> RunComparison:
    """The cases that both runs measured. Raises BenchError when there is none."""
    first, second = _rates(before), _rates(after)
    if not set(first) & set(second):
        # The same cases on another database are still worth comparing, with a warning.
        renamed = _on_any_database(first), _on_any_database(second)
        if all(renamed) and set(renamed[0]) & set(renamed[1]):
            first, second = renamed
    shared = [key for key in first if key in second]
    if not shared:
        raise BenchError(
            f"{before.directory} and {after.directory} share no measured case; "
            "compare runs of the same stacks, layers, workloads and levels"
        )
    margin = max(before.info.plan.margin, after.info.plan.margin)
    noises = _noises(first), _noises(second)
    return RunComparison(
        cases=tuple(
            CaseComparison(
                key,
                estimate(first[key].values()),
                estimate(second[key].values()),
                _compared(key, (first[key], second[key]), noises, margin),
            )
            for key in shared
        ),
        only_before=tuple(key for key in first if key not in second),
        only_after=tuple(key for key in second if key not in first),
        warnings=tuple(warnings(before, after)),
        margin=margin,
    )


def _rates(run: Run) -> Rates:
    """Requests/s of each case at a level by round, in the order of the report, without wrong answers."""
    found: Rates = {}
    for row in arrange(run).rows:
        if row.ranked:
            where = row.setting
            key = (row.stack, row.layer, where.workload, where.size, where.level, where.database)
            found[key] = row.by_round("requests_per_second")
    return found


def _noises(rates: Rates) -> dict[Key, Noise[Key]]:
    """Case -> the noise of all cases with its workload, size, level and database, itself included."""
    tables: dict[tuple[object, ...], dict[Key, dict[int, float]]] = {}
    for key, rounds in rates.items():
        if logs := logarithms(rounds):
            tables.setdefault(key[2:], {})[key] = logs
    return {key: noise for table in tables.values() for noise in [noise_of(table)] for key in table}


def _compared(
    key: Key,
    rounds: tuple[dict[int, float], dict[int, float]],
    noises: tuple[dict[Key, Noise[Key]], ...],
    margin: float,
) -> Ratio | None:
    """B / A of a case; None when a side measured nothing above zero."""
    before, after = noises
    if key not in before or key not in after:
        return None
    first, second = (statistics.median(side.values()) for side in rounds)
    return between(before[key], after[key], key, second / first, margin)


def _on_any_database(rates: Rates) -> Rates:
    """The same without the database's name; empty when a run has a case on two databases."""
    renamed = {(*key[:-1], "any"): rate for key, rate in rates.items()}
    return renamed if len(renamed) == len(rates) else {}


# ------------------------------------------------------------------------------------------- warnings


# Older runs did not record these: unknown is no difference.
RECORDED_LATER = ("governors", "limits", "seeds of the rows")


def warnings(before: Run, after: Run) -> Iterable[str]:
    """One line for each difference between the environments that changes figures, or between rendered files."""
    first, second = _conditions(before), _conditions(after)
    sizes = before.environment.memory_bytes, after.environment.memory_bytes
    if max(sizes) - min(sizes) <= MEMORY_MARGIN * max(sizes):
        second["memory sizes"] = first["memory sizes"]
    for what, value in first.items():
        other = second[what]
        if value != other and not (what in RECORDED_LATER and None in (value, other)):
            yield f"{what} differ: {_shown(value)} in A, {_shown(other)} in B"
    yield from _versions("packages", before.environment.packages, after.environment.packages)
    yield from _versions("programs", before.environment.programs, after.environment.programs)
    yield from _configs(before.environment.configs or {}, after.environment.configs or {})


def _conditions(run: Run) -> dict[str, object]:
    """What changes figures, by name."""
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
        "changed values": _listed(plan.changes),
        "project environments": _listed(plan.env),
    }


def _pairs(values: Mapping[str, object] | None) -> str | None:
    return None if values is None else ", ".join(f"{name} {value}" for name, value in values.items())


def _configs(before: dict[str, str], after: dict[str, str]) -> Iterable[str]:
    """Configuration files that both runs rendered and that differ."""
    differing = [name for name in before if name in after and before[name] != after[name]]
    if differing:
        more = f" and {len(differing) - MAX_CONFIGS_SHOWN} more" if len(differing) > MAX_CONFIGS_SHOWN else ""
        yield one_line(f"rendered configurations differ: {', '.join(differing[:MAX_CONFIGS_SHOWN])}{more}")


def _shown(value: object) -> str:
    if value is None:
        return "not known"
    if isinstance(value, (int, float)):
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    return one_line(value)


def _listed(values: Sequence[str]) -> str:
    return ", ".join(redacted(value) for value in values) or "none"


def _versions(what: str, before: dict[str, str], after: dict[str, str]) -> Iterable[str]:
    """One line for all versions that differ, of programs that both runs name."""
    differing = [
        f"{name} {before[name]} / {after[name]}" for name in before if name in after and before[name] != after[name]
    ]
    if differing:
        yield one_line(f"{what} differ (A / B): {', '.join(differing)}")


# ------------------------------------------------------------------------------------------- printing


def render(comparison: RunComparison, before: Path, after: Path, width: int) -> list[str]:
    """The comparison as lines of text, within a width where no name or path is wider."""
    cases = comparison.cases
    varying = _varying([item.key for item in cases])
    heads = ["case", "A", "95 % interval", "B", "95 % interval", "B / A", "B is"]
    rows = [
        [
            _name(item.key, varying),
            median(item.before),
            range_of(item.before),
            median(item.after),
            range_of(item.after),
            times(item.ratio),
            item.verdict,
        ]
        for item in cases
    ]
    lines = [f"A = {before}", f"B = {after}", "Figures are requests/s.", "", *_table([heads, *rows], width), ""]
    counts = {word: sum(item.verdict == word for item in cases) for word in (FASTER, SLOWER, INCONCLUSIVE)}
    texts = [
        f"{plural(len(cases), 'case')} in both runs: B is faster in {counts[FASTER]}, slower in {counts[SLOWER]}, "
        f"inconclusive in {counts[INCONCLUSIVE]} (within chance or the margin of {comparison.margin:.0%})"
    ]
    for name, keys in (("A", comparison.only_before), ("B", comparison.only_after)):
        if keys:
            names = ", ".join(_name(key, set(range(len(key)))) for key in keys)
            texts.append(f"measured in {name} only: {names}")
    texts += ["", *_real(cases, varying, comparison.margin)]
    return lines + [line for text in texts for line in paragraph(text, width, hanging="  ")]


def _real(cases: Sequence[CaseComparison], varying: set[int], margin: float) -> Iterable[str]:
    """The last lines: the real differences, largest first."""
    found = [(item, item.compared) for item in cases if item.compared and item.verdict != INCONCLUSIVE]
    if not found:
        yield f"No real difference: none exceeds both chance and the margin of {margin:.0%}."
        return
    yield "Real differences:"
    for item, ratio in sorted(found, key=lambda item: -abs(math.log(item[1].ratio))):
        ends = f"{times(ratio.low)} to {times(ratio.high)}"
        yield f"  {_name(item.key, varying)}: B is {item.verdict}, {times(ratio.ratio)} ({ends})"


def _varying(keys: Sequence[Key]) -> set[int]:
    """Indexes of the key to print: stack, layer and workload always, the others where they differ."""
    return {0, 1, 2} | {index for index in range(3, 6) if len({key[index] for key in keys}) > 1}


def _name(key: Key, varying: set[int]) -> str:
    return "~".join(one_line(part) for index, part in enumerate(key) if index in varying)


def _table(rows: list[list[str]], width: int) -> Iterable[str]:
    """Columns two spaces apart: first and last left-aligned, figures right-aligned.

    Where that is too wide, each case stands in a line of its own over its figures.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    is_wide = sum(widths) + 2 * len(widths[1:]) > width
    for cells in (rows[0], ["-" * wide for wide in widths], *rows[1:]):
        figures = [cell.rjust(wide) for cell, wide in zip(cells, widths, strict=True)][1:-1]
        if is_wide:
            yield cells[0]
        yield "  ".join(("" if is_wide else cells[0].ljust(widths[0]), *figures, cells[-1]))
