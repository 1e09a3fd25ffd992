"""Sizes: the limits of `--size`, from deploy/values/sizes.toml, and whether this machine can enforce them."""

from __future__ import annotations

from pathlib import Path

import psutil
from msgspec import Struct

from bench.errors import BenchError
from bench.serve.catalog.names import NO_LIMIT
from bench.serve.catalog.toml import decode, read_toml
from bench.serve.machine import cgroups, cpu_affinity
from bench.serve.machine.cgroups import Group, Limits, Unavailable
from bench.words import MIB


class Size(Struct, frozen=True, forbid_unknown_fields=True):
    """A limit put on stack, layer and services together.

    guaranteed_mb  memory in MiB that the kernel does not reclaim when the machine runs short
    burstable_mb   limit of memory in MiB
    cpus           limit of CPU time in cores, such as 0.5

    `UNLIMITED` is a size without these.
    """

    name: str
    guaranteed_mb: int
    burstable_mb: int
    cpus: float

    def __post_init__(self) -> None:
        if self.name == NO_LIMIT:
            return
        if not 0 < self.guaranteed_mb <= self.burstable_mb:
            raise ValueError(f"size {self.name}: use 0 < guaranteed_mb <= burstable_mb")
        if not 0 < self.cpus < float("inf"):
            raise ValueError(f"size {self.name}: cpus must be a number above 0, not {self.cpus:g}")

    @property
    def title(self) -> str:
        """In words: `128 MiB of memory guaranteed, 256 MiB at most, 1 CPU`."""
        if not self.is_limited:
            return "no limit"
        cpus = "1 CPU"
        if self.cpus != 1:
            cpus = f"{self.cpus:g} CPUs"
        return f"{self.guaranteed_mb} MiB of memory guaranteed, {self.burstable_mb} MiB at most, {cpus}"

    @property
    def is_limited(self) -> bool:
        return self.cpus > 0

    @property
    def limits(self) -> Limits:
        """The limits of the control group; only a limited size has them."""
        return Limits(self.guaranteed_mb * MIB, self.burstable_mb * MIB, self.cpus)


UNLIMITED = Size(NO_LIMIT, 0, 0, 0.0)


def read(path: Path) -> dict[str, Size]:
    """Every size by name, `unlimited` first; raises BenchError naming a wrong file."""
    sizes = {UNLIMITED.name: UNLIMITED}
    for name, entry in read_toml(path).items():
        if not isinstance(entry, dict) or name in sizes:
            raise BenchError(f"{path}: {name}: write each size as a separate table, [bronze]; not {UNLIMITED.name}")
        sizes[name] = decode(entry, Size, path, name=name)
    return sizes


def problem(size: Size) -> str:
    """The reason why the size is not available here and a remedy, or an empty string."""
    if not size.is_limited:
        return ""
    if size.cpus > (cores := len(cpu_affinity.affinity())):
        return f"it has {size.cpus:g} CPUs and this machine {cores}"
    if size.limits.burstable_bytes > psutil.virtual_memory().total:
        return f"it has {size.burstable_mb} MiB of memory, more than this machine"
    try:
        cgroups.group()
    except Unavailable as error:
        return str(error)
    return ""


def group(size: Size) -> Group | None:
    """A control group for the size, not made yet; None without limits.

    Raises BenchError if the size is not available here.
    """
    if not size.is_limited:
        return None
    if reason := problem(size):
        raise BenchError(f"--size {size.name} is not available here: {reason}")
    return cgroups.group()
