"""A recording's own arrivals as an open loop: `run --rate x1` replays them, `x2` in half of the time."""

from __future__ import annotations

import itertools
import math
import re

from bench.errors import BenchError
from bench.measure.run.workload import Workload

# Seconds of a trial at most, unless --duration requests more.
USUAL_S = 60
MAX_RATE = 100_000
_FACTOR = re.compile(r"x([1-9][0-9]{0,2}|0\.[1-9])")


def rate(text: str) -> int | float:
    """Requests a second as a whole number, or how many times as fast as recorded, `x2`, as a float.

    Raises BenchError for another text.
    """
    if match := _FACTOR.fullmatch(text):
        return float(match[1])
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= MAX_RATE:
        what = f"a whole number from 1 to {MAX_RATE}"
        raise BenchError(f"{text!r} is neither {what} nor a speed such as x1 or x2")
    return int(text)


def duration_s(workload: Workload, factor: float) -> int:
    """Default duration of a trial: the whole recording, up to USUAL_S."""
    return max(1, min(USUAL_S, math.ceil(_period_s(workload, factor) / factor)))


def level(workload: Workload, factor: float, seconds: float) -> int:
    """The requests a second of a replay, on average, at least 1."""
    return max(1, round(len(arrivals(workload, factor, seconds)) / seconds))


def arrivals(workload: Workload, factor: float, seconds: float) -> tuple[float, ...]:
    """The due time of each request, in seconds from the start; a short recording is repeated."""
    period_s = _period_s(workload, factor)
    due: list[float] = []
    for cycle in range(math.ceil(seconds * factor / period_s) + 1):
        due += [(cycle * period_s + time_s) / factor for time_s in workload.times_s]
    return tuple(itertools.takewhile(lambda at: at < seconds, due))


def _period_s(workload: Workload, factor: float) -> float:
    """Time between two starts of the recording: its length and the usual gap between two requests.

    Raises BenchError if the recording has no times.
    """
    times, name = workload.times_s, workload.name
    if not times:
        raise BenchError(f"--rate x{factor:g}: workload {name} has no times to replay; name one of a HAR file or a log")
    return times[-1] + max(times[-1] / max(1, len(times) - 1), 0.001)
