"""Definition of a fault: its expectations, and the cases that can have it. bench.measure.faults.kinds has all
faults."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.measure.faults.fault_context import FaultContext
from bench.serve.deployment import render
from bench.serve.deployment.case import Case
from bench.serve.deployment.database import AS_IS, SQLITE

# The steps of a fault: up to its first `yield` it prepares; then visitors send requests for some quiet seconds; the
# fault itself follows. After a second `yield`, once the visitors have gone, it cleans up.
Run = Callable[[FaultContext], Generator[None]]
# The reason why a case cannot have a fault, or empty.
Misfit = Callable[[Case], str]


@dataclass(frozen=True)
class Expected:
    """Limits of the effects on visitors; None: no limit. No response may be wrong, and no static file missing.

    lost        requests without a right response
    recovery_s  seconds from the end of the cause to right responses only
    stale       stale pages
    slowest_s   maximum seconds of a request
    """

    lost: int | None = 0
    recovery_s: float | None = 3.0
    stale: int | None = 0
    slowest_s: float | None = None


ANY = Expected(lost=None)


def unless(holds: Callable[[Case], object], reason: str) -> Misfit:
    """The reason why a case fails the condition `holds`; {app} and {front} name its servers."""

    def misfit(case: Case) -> str:
        if holds(case):
            return ""
        return reason.format(app=case.servers[0].name, front=case.servers[-1].name)

    return misfit


NONE = unless(lambda case: True, "")
NO_FRONT = unless(lambda case: len(case.servers) > 1, "the application server is itself in front")
NO_SERVICE = unless(lambda case: case.services, "no layer here uses a caching service")
NO_SIDECAR = unless(lambda case: case.sidecars, "no layer here has a sidecar")
NO_CACHED_PAGES = unless(lambda case: case.caches == "pages", "no layer here caches pages")
NO_TLS = unless(lambda case: case.servers[-1].tls, "{front} has no TLS listener")
NO_RECYCLING = unless(lambda case: "max_requests" in render.names_used(case), "{app} recycles no workers")
# A server that a project uses itself may have other clients.
NO_OWN_DATABASE = unless(lambda case: case.database.service, "it needs a separate database: give --database postgresql")
NO_WRITE_LOCK = unless(lambda case: case.database.label in (SQLITE, AS_IS), "only SQLite has one lock for all writers")
NO_MEMORY_LIMIT = unless(lambda case: case.size.is_limited, "it needs a limit of memory: give --size bronze")


@dataclass(frozen=True)
class Fault:
    """One fault.

    group     one of bench.measure.records.fault_outcomes.GROUPS
    title     the event, in a sentence
    run       causes the event; may raise FaultNotApplicable with the reason
    expected  limits of the effects on visitors
    misfit    why a case cannot have the fault, or empty
    changes   changed values of the deployment for this fault
    """

    name: str
    group: str
    title: str
    run: Run
    expected: Expected = Expected()
    misfit: Misfit = NONE
    changes: Mapping[str, Any] = field(default_factory=dict)


def fault(
    name: str, group: str, expected: Expected = Expected(), misfit: Misfit = NONE, **changes: object
) -> Callable[[Run], Fault]:
    """Make a Fault of a function, whose docstring is its title; `changes` are values for its deployment."""

    def define(run: Run) -> Fault:
        return Fault(name, group, " ".join((run.__doc__ or "").split()), run, expected, misfit, changes)

    return define
