"""All faults, in the order of these modules and, within a module, of their definitions."""

from __future__ import annotations

from bench.errors import BenchError, hint
from bench.faults.fault import Fault
from bench.faults.kinds import abused, hung, killed, replaced, starved

MODULES = (replaced, killed, hung, starved, abused)
FAULTS = {item.name: item for module in MODULES for item in vars(module).values() if isinstance(item, Fault)}


def named(names: tuple[str, ...]) -> list[Fault]:
    """The faults of these names and groups, all without one. Raises BenchError for a name that does not exist."""
    groups = {item.group for item in FAULTS.values()}
    for name in names:
        if name not in FAULTS and name not in groups:
            raise BenchError(f"no fault is called {name!r}; {hint(name, [*FAULTS, *groups], 'the faults are:')}")
    return [item for item in FAULTS.values() if not names or item.name in names or item.group in names]
