"""Axes of the charts: from a value to a position, and the ticks worth a label. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

LINEAR, LOG = "linear", "log"

_STEPS = (1, 2, 5)


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high` at positions from `start` to `end`, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    scale: str
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """The position of a value; a value outside is drawn at the nearer end."""
        value = min(max(value, self.low), self.high)
        if self.scale == LOG:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def axis(values: Iterable[float], start: float, end: float, scale: str = LINEAR, room: float = 90) -> Axis:
    """An axis that holds all values, with a label about every `room` units of length."""
    known = [value for value in values if value > 0]
    limit = max(2, int(abs(end - start) / room))
    if scale == LOG and known:
        low, high = _step_below(min(known)), _step_above(max(known))
        return Axis(low, high, start, end, LOG, _log_ticks(low, high, limit))
    step = _nice(max(known, default=1.0) / limit)
    count = max(1, math.ceil(max(known, default=1.0) / step - 1e-9))
    return Axis(0.0, step * count, start, end, LINEAR, tuple(step * k for k in range(count + 1)))


def scale_for(values: Iterable[float | None]) -> str:
    """Logarithmic when the largest value is over 30 times the smallest, else linear."""
    known = [value for value in values if value]
    return LOG if known and max(known) > 30 * min(known) else LINEAR


def tick_label(value: float) -> str:
    """A short label: `0.5`, `20`, `1k`, `50k`, `2M`."""
    for factor, letter in ((1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:g}{letter}"
    return f"{value:.7f}".rstrip("0").rstrip(".") if value < 0.001 else f"{value:g}"


def _nice(value: float) -> float:
    """The smallest 1, 2 or 5 times a power of ten that is at least `value`."""
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in _STEPS if step * power >= value * (1 - 1e-9)), 10 * power)


def _step_above(value: float) -> float:
    return _nice(value * 1.02)


def _step_below(value: float) -> float:
    """The largest 1, 2 or 5 times a power of ten clearly below `value`, so that its mark stays visible."""
    value /= 1.1
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in reversed(_STEPS) if step * power <= value * (1 + 1e-9))


def _log_ticks(low: float, high: float, limit: int) -> tuple[float, ...]:
    """Ticks at 1-2-5, at powers of ten, or at every second or third of those: the first choice that fits."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    choices = [[step * 10.0**power for power in powers for step in _STEPS]]
    choices += [[10.0**power for power in powers if power % every == 0] for every in (1, 2, 3)]
    inside = [[tick for tick in ticks if low * 0.999 <= tick <= high * 1.001] for ticks in choices]
    return tuple(next((ticks for ticks in inside if len(ticks) <= limit), inside[-1]) or (low, high))
