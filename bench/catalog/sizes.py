"""Sizes: what `--size` limits a deployment to, from deploy/sizes.toml, and whether that can be done here."""

from __future__ import annotations

import difflib
import functools
from dataclasses import dataclass

import psutil

from bench import paths
from bench.catalog.manifest import build, read_toml
from bench.errors import BenchError
from bench.host import cgroups, machine
from bench.host.cgroups import Group, Limits, Unavailable

UNLIMITED = "unlimited"
FILE = paths.DEPLOY / "sizes.toml"
MIB = 1024 * 1024


@dataclass(frozen=True)
class Size:
    """A limit put on stack, layer and services together.

    guaranteed_mb  memory in MiB that is taken from others first when the machine runs short
    burstable_mb   memory in MiB that may be used at most
    cpus           processor time, in cores; a part of one can be given, 0.5
    """

    name: str
    guaranteed_mb: int
    burstable_mb: int
    cpus: float

    def __post_init__(self) -> None:
        if not 0 < self.guaranteed_mb <= self.burstable_mb:
            raise ValueError(f"size {self.name}: use 0 < guaranteed_mb <= burstable_mb")
        if not isinstance(self.cpus, (int, float)) or not 0 < self.cpus < float("inf"):
            raise ValueError(f"size {self.name}: cpus must be a number above 0, not {self.cpus!r}")

    @property
    def title(self) -> str:
        """In words: `128 MiB of memory guaranteed, 256 MiB at most, 1 CPU`."""
        cpus = "1 CPU" if self.cpus == 1 else f"{self.cpus:g} CPUs"
        return f"{self.guaranteed_mb} MiB of memory guaranteed, {self.burstable_mb} MiB at most, {cpus}"

    @property
    def limits(self) -> Limits:
        return Limits(self.guaranteed_mb * MIB, self.burstable_mb * MIB, self.cpus)


@functools.cache
def sizes() -> dict[str, Size]:
    """Every size by name but `unlimited`; raises BenchError naming the file when it is wrong."""
    found = {}
    for name, entry in read_toml(FILE).items():
        if not isinstance(entry, dict) or name == UNLIMITED:
            raise BenchError(f"{FILE}: {name}: write each size as a table of its own, [bronze]; {UNLIMITED} is no size")
        found[name] = build(Size, {"name": name, **entry}, FILE)
    return found


def named(name: str) -> Size | None:
    """The size called `name`, None for `unlimited`; raises BenchError with the nearest name when there is none."""
    if name == UNLIMITED:
        return None
    known = sizes()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join([UNLIMITED, *known])}"
    raise BenchError(f"--size {name}: no such size; {hint}")


def problem(name: str) -> str:
    """Why the size cannot be had here and what would help, or an empty string; raises BenchError for an unknown one."""
    size = named(name)
    if size is None:
        return ""
    if size.cpus > machine.cores():
        return f"it has {size.cpus:g} CPUs and this machine {machine.cores()}"
    if size.limits.burstable_bytes > psutil.virtual_memory().total:
        return f"it has {size.burstable_mb} MiB of memory, more than this machine"
    try:
        cgroups.group()
    except Unavailable as error:
        return str(error)
    return ""


def group(name: str) -> Group | None:
    """A group for the size, not made yet; None for `unlimited`. Raises BenchError when it cannot be had here."""
    if reason := problem(name):
        raise BenchError(f"--size {name} cannot be had here: {reason}")
    return cgroups.group() if named(name) else None
