"""The definition of a fault, its group, and what is expected of it.

A fault is one small generator: what it does before its first `yield` prepares it, then the visitors begin to ask and
some quiet seconds pass; what follows is the fault itself. After its end the visitors go on for some seconds; with a
second `yield` it goes on after them, to put things back. What it must undo whatever happens is in a `finally`. To add
one, write the generator in a module of `bench.faults.kinds` under `@fault("its-name", group=...)`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.faults.scene import Scene
from bench.results.faults import GROUPS
from bench.serve.case import Case

FaultFunction = Callable[[Scene], Generator[None]]


@dataclass(frozen=True)
class Expected:
    """What visitors may notice at most; None: anything.

    lost        requests without a right answer
    recovery_s  seconds from the end of the cause to right answers only
    wrong       wrong answers
    stale       stale pages
    missing     static files that pages name and that are not there
    """

    lost: int | None = 0
    recovery_s: float | None = 3.0
    wrong: int | None = 0
    stale: int | None = 0
    missing: int | None = 0


def _fits_all(case: Case) -> str:
    return ""


@dataclass(frozen=True)
class Fault:
    """The definition of one fault.

    run       the generator, see above; it may raise CannotFault with the reason
    title     what happens, in a sentence
    group     one of GROUPS
    expected  what visitors may notice
    misfit    why a case cannot have it, or empty
    changes   values that the deployment is served with for this fault
    """

    name: str
    run: FaultFunction
    title: str
    group: str
    expected: Expected = Expected()
    misfit: Callable[[Case], str] = _fits_all
    changes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.group not in GROUPS:
            raise ValueError(f"fault {self.name}: no group is called {self.group!r}")


def fault(
    name: str,
    *,
    group: str,
    expected: Expected | None = None,
    misfit: Callable[[Case], str] = _fits_all,
    changes: Mapping[str, Any] | None = None,
) -> Callable[[FaultFunction], Fault]:
    """Make a Fault of a generator, whose docstring is its title; see Fault."""

    def define(run: FaultFunction) -> Fault:
        title = " ".join((run.__doc__ or "").split("\n\n")[0].split())
        return Fault(name, run, title, group, expected or Expected(), misfit, changes or {})

    return define


def is_alone(case: Case) -> str:
    """Why a fault of the server in front does not fit a chain of one server, or an empty string when it does."""
    return "" if len(case.servers) > 1 else "the application server is itself in front"


def has_no_service(case: Case) -> str:
    """Why a fault of a caching service does not fit layers without one, or an empty string when it does."""
    return "" if case.services else "no layer here uses a caching service"


def caches_no_pages(case: Case) -> str:
    """Why a fault of cached pages does not fit layers without any, or an empty string when it does."""
    return "" if case.caches == "pages" else "no layer here caches pages"
