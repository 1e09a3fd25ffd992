"""All faults, in order."""

from __future__ import annotations

from itertools import chain

from bench import PROGRAM
from bench.errors import BenchError, hint
from bench.measure.faults import (
    caching_service,
    clients,
    crashes,
    database_outages,
    deploys,
    exhaustion,
    rendering,
    stored,
)
from bench.measure.faults.fault import Fault
from bench.measure.records.fault_outcomes import GROUPS

_MODULES = (deploys, crashes, caching_service, rendering, database_outages, exhaustion, stored, clients)
_EVERY = chain.from_iterable(module.FAULTS for module in _MODULES)
_ALL = sorted(_EVERY, key=lambda each: list(GROUPS).index(each.group))
FAULTS = {fault.name: fault for fault in _ALL}


def named(names: tuple[str, ...]) -> list[Fault]:
    """The faults of these names and groups; all by default. Raises BenchError for an unknown name."""
    for name in names:
        if name not in FAULTS and name not in GROUPS:
            listed = hint(name, [*FAULTS, *GROUPS], lister=f"{PROGRAM} faults --list-faults")
            raise BenchError(f"no fault is called {name!r}; {listed}")
    return [fault for fault in _ALL if not names or fault.name in names or fault.group in names]
