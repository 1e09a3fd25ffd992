"""Compare two runs case by case: medians of A and B, their ratio, and a verdict on B. Pure.

B is faster or slower when the whole 95 % confidence interval of the ratio lies beyond the margin. Otherwise the
comparison is inconclusive.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.errors import BenchError
from bench.figures.stats import FASTER, INCONCLUSIVE, SLOWER, Ratio, Spread, spread, unpaired
from bench.report.arrange import arrange
from bench.report.numbers import median, one_line, plural, range_of, size, times
from bench.report.redact import redacted
from bench.results.folder import Run
from bench.results.records import Environment

MAX_CONFIGS_SHOWN = 3
MEMORY_MARGIN = 0.05  # the same machine reports a little more or less memory from boot to boot

Key = tuple[str, str, str, str, int, str]  # stack, layer, workload, size, level, database


@dataclass(frozen=True)
class CaseComparison:
    """One case at one level in both runs."""

    key: Key
    before: Spread | None
    after: Spread | None
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
    return RunComparison(
        cases=tuple(_case(key, first[key], second[key], margin) for key in shared),
        only_before=tuple(key for key in first if key not in second),
        only_after=tuple(key for key in second if key not in first),
        warnings=tuple(warnings(before, after)),
        margin=margin,
    )


def _case(key: Key, before: list[float], after: list[float], margin: float) -> CaseComparison:
    # Rounds of two runs cannot be paired: nothing connects the first round of one with the first of the other.
    return CaseComparison(key, spread(before), spread(after), unpaired(before, after, margin))


def _rates(run: Run) -> dict[Key, list[float]]:
    """Case at a level -> requests/s of each round, in the order of the report, without wrong answers."""
    found: dict[Key, list[float]] = {}
    for row in arrange(run).rows:
        if row.ranked:
            setting = row.setting
            key = (
                row.stack,
                row.layer,
                setting.workload,
                setting.size,
                setting.level,
                setting.database,
            )
            found[key] = list(row.by_round("requests_per_second").values())
    return found


def _on_any_database(rates: dict[Key, list[float]]) -> dict[Key, list[float]]:
    """The same without the database's name; empty when a run has a case on two databases."""
    renamed = {(*key[:-1], "any"): rate for key, rate in rates.items()}
    return renamed if len(renamed) == len(rates) else {}


# ------------------------------------------------------------------------------------------- warnings


def warnings(before: Run, after: Run) -> Iterable[str]:
    """One line for each difference between the environments that changes figures."""
    first, second = before.environment, after.environment
    yield from _unlike("CPUs", first.cpu_model, second.cpu_model)
    yield from _unlike("cores", first.cores, second.cores)
    if abs(first.memory_bytes - second.memory_bytes) > MEMORY_MARGIN * max(first.memory_bytes, second.memory_bytes):
        yield _line("memory sizes", size(first.memory_bytes), size(second.memory_bytes))
    yield from _unlike("operating systems", first.os, second.os)
    yield from _unlike("kernels", first.kernel, second.kernel)
    yield from _unlike("Python versions", first.python, second.python)
    yield from _known("governors", first.governor, second.governor)
    yield from _known("limits", _pairs(first.limits), _pairs(second.limits))
    yield from _unlike("CPU cores of load, stack and services", _pairs(first.affinity), _pairs(second.affinity))
    yield from _unlike("load tools", _tool(first), _tool(second))
    yield from _unlike("modes", before.info.plan.mode, after.info.plan.mode)
    yield from _unlike("databases", before.info.plan.database, after.info.plan.database)
    yield from _unlike("rows in the database", before.info.plan.rows_total, after.info.plan.rows_total)
    yield from _unlike("seconds of load", before.info.plan.duration_s, after.info.plan.duration_s)
    yield from _unlike("seconds of warm-up", before.info.plan.warmup_s, after.info.plan.warmup_s)
    yield from _unlike("changed values", _listed(before.info.plan.changes), _listed(after.info.plan.changes))
    yield from _unlike("project environments", _listed(before.info.plan.env), _listed(after.info.plan.env))
    yield from _versions("packages", first.packages, second.packages)
    yield from _versions("programs", first.programs, second.programs)
    yield from _known("seeds of the rows", first.rows_seed, second.rows_seed)
    yield from _configs(first.configs or {}, second.configs or {})


def _unlike(what: str, before: object, after: object) -> Iterable[str]:
    if before != after:
        yield _line(what, before, after)


def _known(what: str, before: object, after: object) -> Iterable[str]:
    """As `_unlike`, for values that older runs did not record."""
    if before is not None and after is not None:
        yield from _unlike(what, before, after)


def _pairs(values: Mapping[str, object] | None) -> str | None:
    return None if values is None else ", ".join(f"{name} {value}" for name, value in values.items())


def _configs(before: dict[str, str], after: dict[str, str]) -> Iterable[str]:
    """Configuration files that both runs rendered and that differ."""
    differing = [name for name in before if name in after and before[name] != after[name]]
    if differing:
        more = f" and {len(differing) - MAX_CONFIGS_SHOWN} more" if len(differing) > MAX_CONFIGS_SHOWN else ""
        yield one_line(f"rendered configurations differ: {', '.join(differing[:MAX_CONFIGS_SHOWN])}{more}")


def _line(what: str, before: object, after: object) -> str:
    return f"{what} differ: {_shown(before)} in A, {_shown(after)} in B"


def _shown(value: object) -> str:
    if value is None:
        return "not known"
    if isinstance(value, (int, float)):
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    return one_line(value)


def _listed(values: Sequence[str]) -> str:
    return ", ".join(redacted(value) for value in values) or "none"


def _tool(environment: Environment) -> str:
    tool = environment.load_tool
    return f"{tool.name} {tool.version or ''}".strip()


def _versions(what: str, before: dict[str, str], after: dict[str, str]) -> Iterable[str]:
    """One line for all versions that differ, of programs that both runs name."""
    differing = [
        f"{name} {before[name]} / {after[name]}" for name in before if name in after and before[name] != after[name]
    ]
    if differing:
        yield one_line(f"{what} differ (A / B): {', '.join(differing)}")


# ------------------------------------------------------------------------------------------- printing


def render(comparison: RunComparison, before: Path, after: Path) -> list[str]:
    """The comparison as lines of text."""
    cases = comparison.cases
    varying = _varying([item.key for item in cases])
    heads = ["case", "A requests/s", "95 % interval", "B requests/s", "95 % interval", "B / A", "B is"]
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
    lines = [f"A = {before}", f"B = {after}", "", *_table(heads, rows), ""]
    counts = {word: sum(item.verdict == word for item in cases) for word in (FASTER, SLOWER, INCONCLUSIVE)}
    lines.append(
        f"{plural(len(cases), 'case')} in both runs: B is faster in {counts[FASTER]}, slower in {counts[SLOWER]}, "
        f"inconclusive in {counts[INCONCLUSIVE]} (within chance or the margin of {comparison.margin:.0%})"
    )
    for name, keys in (("A", comparison.only_before), ("B", comparison.only_after)):
        if keys:
            names = ", ".join(_name(key, set(range(len(key)))) for key in keys)
            lines.append(f"measured in {name} only: {names}")
    return [*lines, "", *_real(cases, varying, comparison.margin)]


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


def _table(heads: list[str], rows: list[list[str]]) -> list[str]:
    """Columns two spaces apart: first and last left-aligned, figures right-aligned."""
    widths = [max(len(cells[index]) for cells in [heads, *rows]) for index in range(len(heads))]
    last = len(heads) - 1

    def line(cells: list[str]) -> str:
        padded = [
            cell.ljust(width) if index in (0, last) else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    return [line(heads), line(["-" * width for width in widths]), *map(line, rows)]
