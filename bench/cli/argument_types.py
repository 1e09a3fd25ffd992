"""Types of options: each reads a text, or raises BenchError in one line."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.errors import BenchError, hint
from bench.serve.machine.ports import MAX_PORT

# The first port that needs no right: ip(7).
FIRST_PORT = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")


def name(text: str) -> str:
    """A name of a stack, a check, a workload, ...; a comma between names is refused.

    A variant such as NAME@processes=1,threads=4 has commas after the @.
    """
    if "," in text.partition("@")[0]:
        raise BenchError(f"{text}: give each name by itself, without a comma")
    return text


def choice(names: Sequence[str]) -> Callable[[str], str]:
    """One of a few names."""

    def read(text: str) -> str:
        if text not in names:
            raise BenchError(f"{text!r}: {hint(text, names, 'use one of')}")
        return text

    return read


def layer(text: str) -> str:
    """The name of a layer, or of several joined by +."""
    if "," in text:
        together = text.replace(",", "+")
        raise BenchError(f"{text}: write {together} for all of them in one, or repeat --layer for each")
    return text


def count(most: int = 1_000_000) -> Callable[[str], int]:
    """A whole number from 1 to `most`."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= most:
            raise BenchError(f"{text!r} is not a whole number from 1 to {most}")
        return int(text)

    return read


def port(text: str) -> int:
    """A port for servers without root."""
    number = count(MAX_PORT)(text)
    first = int(FIRST_PORT.read_text("ascii"))
    if number < first:
        raise BenchError(f"{text}: servers have no right to ports below {first}; use 8000, for example")
    return number


def seconds(text: str) -> int:
    """A duration such as 90s, 3m or 1h in seconds."""
    match = re.fullmatch(r"([1-9][0-9]{0,6})([smh])", text)
    if not match:
        raise BenchError(f"{text!r} is not a time such as 90s, 3m or 1h")
    return int(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]


def share(text: str) -> float:
    """A number from 0 to 0.99."""
    with contextlib.suppress(ValueError):
        if 0 <= float(text) <= 0.99:
            return float(text)
    raise BenchError(f"{text!r} is not a share such as 0.05")
