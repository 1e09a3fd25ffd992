"""Guards: conditions for trustworthy figures. A guard beyond its bound discards the trial.

Pure: observations in, sentences out. A guard without its observation says "not measured" and why, and discards nothing.
`run --guard NAME=BOUND` moves a bound, `--guard NAME=off` turns a guard off; the run's plan records the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.errors import BenchError, hint
from bench.measure.load import Figures
from bench.measure.records.trials import Evidence
from bench.words import NOT_MEASURED

OK = "ok"
# Effects of the stack itself stay in its figures.
OWN = "the stack's own"
# Minimum share of the machine used by other processes; below it, a drift is caused by the stack.
MIN_OTHERS = 0.05
# Milliseconds by which 1 in 100 requests of an open loop may leave late.
MAX_LATE_MS = 20.0

# Guard -> its default bound, in the order of the report.
BOUNDS: dict[str, float] = {
    "tool": 0.90,  # share of its CPU time that the load tool used
    "interference": 0.25,  # share of the machine's CPU time taken by processes outside the trial
    "drift": 0.25,  # share by which the last third may differ from the first, beyond chance
    "bodies": 0.05,  # allowed shortfall of a response's bytes against the bodies, as a share
    "lost": 0.0,  # share of the requests due that may not be sent
}


@dataclass(frozen=True)
class Observed(Evidence):
    """Observations of a trial at the end of its load, besides recorded evidence. None: not observed.

    figures       of the load tool
    connections   of a closed loop, None in an open one
    rate          requests due a second of an open loop, None in a closed one
    wrong_bodies  the fault of a body seen during or after the load, or empty
    """

    figures: Figures
    connections: int | None = None
    rate: int | None = None
    wrong_bodies: str = ""


def parse_bound(text: str, usual: Mapping[str, float] = BOUNDS) -> tuple[str, float | None]:
    """The guard and its bound in tool=0.8; None for drift=off. Raises BenchError for an unknown guard."""
    name, equals, bound_text = text.partition("=")
    if not equals:
        raise BenchError(f"{text}: write it as NAME=BOUND or NAME=off; there are: {', '.join(usual)}")
    if name not in usual:
        raise BenchError(f"{text}: no guard is called {name!r}; {hint(name, usual)}")
    if bound_text == "off":
        return name, None
    try:
        bound = float(bound_text)
    except ValueError:
        bound = -1.0
    if not 0 <= bound < math.inf:
        raise BenchError(f"{text}: {bound_text!r} is no bound; write a number from 0, or off")
    return name, bound


def bounds(changes: Mapping[str, float | None], usual: Mapping[str, float] = BOUNDS) -> dict[str, float]:
    """The `usual` bounds with changes; a guard changed to None is off."""
    chosen = {**usual, **changes}
    return {name: bound for name, bound in chosen.items() if bound is not None}


def notes(bounds: Mapping[str, float], usual: Mapping[str, float] = BOUNDS) -> list[str]:
    """A note on the guards that are off; empty if none is."""
    off = [name for name in usual if name not in bounds]
    if not off:
        return []
    return [f"guards off: {', '.join(off)}; no trial is discarded because of them"]


def evaluate(observed: Observed, bounds: Mapping[str, float]) -> dict[str, str]:
    """Guard -> `ok`, `not measured: why`, `the stack's own: what`, or the reason to discard the trial."""
    findings = {name: GUARDS[name](observed, bound) or OK for name, bound in bounds.items()}
    if (
        "interference" in findings
        and observed.rate is None
        and observed.other_cpu_share is not None
        and _discards(findings.get("drift", OK))
    ):
        # A repeated trial may not be disturbed. An overloaded site drifts in an open loop by itself.
        findings["interference"] = _took(observed.other_cpu_share)
    return findings


def discards(findings: Mapping[str, str]) -> str | None:
    """The reason to discard the trial, from the guards' findings; None if valid."""
    reasons = [f"{name}: {text}" for name, text in findings.items() if _discards(text)]
    return "; ".join(reasons) or None


def _discards(text: str) -> bool:
    return text != OK and not text.startswith((NOT_MEASURED, OWN))


def _not(why: str) -> str:
    return f"{NOT_MEASURED}: {why}"


def _tool(observed: Observed, bound: float) -> str | None:
    """The load tool stayed below its own limit, by CPU time or by delay; otherwise the trial measured the tool."""
    if observed.tool_cpu_share is not None and observed.tool_cpu_share > bound:
        return f"the load tool used {observed.tool_cpu_share:.0%} of the CPU time it can use"
    if late := _late(observed.figures):
        return late
    if observed.tool_cpu_share is not None:
        return None
    return _not("the load tool's CPU time is not known")


def _late(figures: Figures) -> str:
    """Delayed requests of an open loop, if the delay changes their latency; empty otherwise."""
    delay, latency = figures.send_delay_p99_ms, figures.latency_p99_ms or figures.latency_max_ms
    if delay is None or delay <= max(MAX_LATE_MS, (latency or 0) / 10):
        return ""
    return f"1 in 100 requests left {delay:.1f} ms late or more"


def _bodies(observed: Observed, bound: float) -> str | None:
    """Bodies fetched during and after the load were right, and the bytes received are enough for them."""
    if observed.wrong_bodies:
        return observed.wrong_bodies
    figures = observed.figures
    if observed.body_bytes is None or figures.bytes_per_second is None:
        return None
    each = figures.bytes_per_second / figures.requests_per_second
    # Larger pages wait longest, and requests still waiting at the end are not among the responses.
    waiting = (observed.connections or 0) / max(1, figures.requests_total)
    if each < observed.body_bytes * (1 - bound - waiting):
        return f"{each:,.0f} bytes a response, but the bodies have {observed.body_bytes:,.0f}"
    return None


def _drift(observed: Observed, bound: float) -> str | None:
    """As many responses in the last third as in the first, except three standard deviations of the count.

    Without other processes on the machine, the stack itself drifts, and its figures are valid for visitors.
    """
    thirds = observed.figures.thirds
    if thirds is None:
        return _not("the load tool does not count the thirds of the load")
    first, last = thirds[0], thirds[2]
    # Responses come in batches: up to one per connection.
    if abs(last - first) <= bound * first + 3 * math.sqrt(first + last) + (observed.connections or 0):
        return None
    drift = f"{first:,} requests in the first third, {last:,} in the last"
    if observed.other_cpu_share is not None and observed.other_cpu_share < MIN_OTHERS:
        return f"{OWN}: {drift}"
    return drift


def _interference(observed: Observed, bound: float) -> str | None:
    if observed.other_cpu_share is None:
        return _not("the CPU time of the machine or of the stack is not known")
    if observed.other_cpu_share > bound:
        return _took(observed.other_cpu_share)
    return None


def _took(others: float) -> str:
    return f"other processes took {others:.0%} of the machine"


def _lost(observed: Observed, bound: float) -> str | None:
    dropped = observed.figures.requests_dropped
    if dropped is None:
        if observed.rate is None:
            return _not("a closed loop has no schedule")
        return _not("the load tool does not say")
    due = round((observed.rate or 0) * observed.figures.duration_s) or 1
    if dropped <= bound * due:
        return None
    return f"the load tool did not send {dropped:,} requests that were due: it had no connection free"


GUARDS: dict[str, Callable[[Observed, float], str | None]] = {
    "tool": _tool,
    "interference": _interference,
    "drift": _drift,
    "bodies": _bodies,
    "lost": _lost,
}
