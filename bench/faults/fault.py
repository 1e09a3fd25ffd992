"""What a fault is, what is expected of it, and on which cases it is made. All of them are in bench.faults.kinds."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.faults.scene import Scene
from bench.serve import render
from bench.serve.case import Case
from bench.serve.database import AS_IS, SQLITE

# What does a fault: up to its first `yield` it prepares, then visitors ask and some quiet seconds pass; what follows is
# the fault itself. After a second `yield`, once the visitors have gone, it puts things back.
Run = Callable[[Scene], Generator[None]]
# Why a case cannot have a fault, or empty.
Misfit = Callable[[Case], str]


@dataclass(frozen=True)
class Expected:
    """What visitors may notice at most; None: anything. No answer may be wrong, and no static file missing.

    lost        requests without a right answer
    recovery_s  seconds from the end of the cause to right answers only
    stale       stale pages
    """

    lost: int | None = 0
    recovery_s: float | None = 3.0
    stale: int | None = 0


ANY = Expected(lost=None)


def fits(case: Case) -> str:
    """Every case can have it."""
    return ""


def is_alone(case: Case) -> str:
    """A case without a server in front."""
    return "" if len(case.servers) > 1 else "the application server is itself in front"


def has_no_service(case: Case) -> str:
    """A case without a caching service."""
    return "" if case.services else "no layer here uses a caching service"


def caches_no_pages(case: Case) -> str:
    """A case whose layers cache no pages."""
    return "" if case.caches == "pages" else "no layer here caches pages"


def has_no_tls(case: Case) -> str:
    """A case whose server in front has no TLS listener."""
    return "" if case.servers[-1].tls else f"{case.servers[-1].name} has no TLS listener"


def recycles_nothing(case: Case) -> str:
    """A case whose application server does not replace its workers after so many requests."""
    return "" if "max_requests" in render.names_used(case) else f"{case.servers[0].name} recycles no workers"


def has_no_own_database(case: Case) -> str:
    """A case whose database, if it is a server, may have other clients."""
    return "" if case.database.service else "it needs a database of its own: give --database postgresql"


def has_no_sqlite(case: Case) -> str:
    """A case on a database without one lock for all writers."""
    return "" if case.database.label in (SQLITE, AS_IS) else "only SQLite has one lock for all writers"


def has_no_limit(case: Case) -> str:
    """A case that may use all of the machine's memory."""
    return "" if case.size.is_limited else "it needs a limit of memory: give --size bronze"


@dataclass(frozen=True)
class Fault:
    """One fault.

    group     one of bench.records.faults.GROUPS
    title     what happens, in a sentence
    run       does it; may raise CannotFault with the reason
    expected  what visitors may notice
    misfit    why a case cannot have it, or empty
    changes   values that the deployment is served with for this fault
    """

    name: str
    group: str
    title: str
    run: Run
    expected: Expected = Expected()
    misfit: Misfit = fits
    changes: Mapping[str, Any] = field(default_factory=dict)


def fault(
    name: str, group: str, expected: Expected = Expected(), misfit: Misfit = fits, **changes: object
) -> Callable[[Run], Fault]:
    """Make a fault of what does it, whose docstring is its title; `changes` are values for its deployment."""

    def made(run: Run) -> Fault:
        return Fault(name, group, " ".join((run.__doc__ or "").split()), run, expected, misfit, changes)

    return made
