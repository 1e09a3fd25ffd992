"""Findings of a check: wrong responses with their requests, figures, and reasons for skipping."""

from __future__ import annotations

from dataclasses import dataclass

from bench.serve.machine.http import Sent

# Reasons to skip a check on a --target: without --database, or without the probe views.
NEEDS_DATABASE = "it needs the site's database: give --database as the URL that the running site uses"
NEEDS_PROBES = "it needs the probe views: start the site with the app `bench.serve.inside`, see docs/cache-safety.md"
NEEDS_OWN = "it needs a separate deployment: verify a STACK instead of a --target"
NEEDS_ROWS = "the project has no rows that a probe may write"
# Port of the command that serves a deployment again: the verified one is gone when its results are read.
UP_PORT = 8000


@dataclass(frozen=True)
class Mismatch:
    """One wrong response: expected, got, and the request, if a request is to blame.

    excuse  the name of an excuse declared by the check; empty: no project is excused
    """

    expected: str
    got: str
    sent: Sent | None = None
    excuse: str = ""


@dataclass(frozen=True)
class Figure:
    """A measurement that is neither right nor wrong; the unit is in its name."""

    name: str
    value: float | int | None


class NotTried(Exception):
    """The check cannot run here, and why. A check yields NotTried to go on, or raises NotTried to end."""


Finding = Mismatch | Figure | NotTried
