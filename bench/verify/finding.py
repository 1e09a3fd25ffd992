"""What a check yields: wrong answers, figures, and reasons why it was not tried."""

from __future__ import annotations

from dataclasses import dataclass

from bench.verify.curl import Sent

# Why a check is not tried on a --target without --database, and on one without the probe views.
NEEDS_DATABASE = "it needs the site's database: give --database as the URL that the running site uses"
NEEDS_PROBES = "it needs the probe views: start the site with the app `bench.inside`, see docs/cache-safety.md"
NEEDS_OWN = "it needs a deployment of its own: verify a STACK instead of a --target"
NEEDS_ROWS = "the project has no rows that a probe may write"


@dataclass(frozen=True)
class Mismatch:
    """One wrong answer: what was expected, what came, and the request, if one is to blame."""

    expected: str
    got: str
    sent: Sent | None = None


@dataclass(frozen=True)
class Figure:
    """A measurement that is neither right nor wrong; the unit is in its name."""

    name: str
    value: float | int | None


class NotTried(Exception):
    """The check cannot be made here, and why. A check yields it to say more, or raises it to end."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


Finding = Mismatch | Figure | NotTried
