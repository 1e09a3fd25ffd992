"""The definition of a check, its groups and its stages.

A check is one small function: it takes a Context and yields a Mismatch for each wrong response, a Figure for each
measurement, and NotTried if this target cannot be tested. A check is written for a strict site; `excused` declares
differences that other projects may have. To add one, write the function in a module of `bench.verify.checks` under
`@check("its-name")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps

from bench.verify.context import Context
from bench.verify.mismatch import Finding, Mismatch, NotTried

BEHAVIOUR = "behaviour"
# Groups of which every failure hands one visitor's page to another, or is a published hole.
LEAKS = ("privacy", "advisories")

# Stages in their order. FIRST: nobody has requested a page, which a layer may store without its headers. READING: the
# database has not changed since the expected responses were rendered. ACCOUNT: an account reads and writes. AFTER:
# pages may differ from the expected ones. LAYER: only the check itself invalidates pages.
FIRST, READING, ACCOUNT, AFTER, LAYER = STAGES = ("first", "reading", "account", "after", "layer")
# Stages whose checks may run at the same time: they only request pages, and other visitors do not disturb them.
SIDE_BY_SIDE = (READING, LAYER)

CheckFunction = Callable[[Context], Iterable[Finding]]
# Raises NotTried if a check cannot be made.
Need = Callable[[Context], None]


@dataclass(frozen=True)
class Check:
    """The definition of one check.

    run           yields findings
    title         promise of the check, in a sentence
    group         one of bench.verify.outcome.GROUPS; all except `behaviour` run only on deployments with a layer
    stage         one of STAGES
    is_exclusive  no other check runs meanwhile, because this one writes, counts requests' traces, or needs the whole
                  site
    thorough      takes seconds and runs by itself: `run` and `verify --quick` leave it out
    leak          a failure hands one visitor's page to another, as each of the groups in LEAKS does
    proved_by     names of checks with the same findings, which run in its place
    """

    name: str
    run: CheckFunction
    title: str
    group: str = BEHAVIOUR
    stage: str = READING
    is_exclusive: bool = False
    thorough: bool = False
    leak: bool = False
    proved_by: tuple[str, ...] = ()

    @property
    def side_by_side(self) -> bool:
        """True if the check may run at the same time as others."""
        return self.stage in SIDE_BY_SIDE and not (self.is_exclusive or self.thorough)

    @property
    def excusable(self) -> bool:
        """True if a stack or layer may declare this check as a known limitation."""
        return not self.leak and self.group not in LEAKS


def check(
    name: str,
    *needs: Need,
    group: str = BEHAVIOUR,
    stage: str = "",
    is_exclusive: bool = False,
    thorough: bool = False,
    leak: bool = False,
) -> Callable[[CheckFunction], Check]:
    """Make a Check of a function, whose docstring is its title, for deployments that meet its needs; see Check."""
    if not stage:
        stage = LAYER
        if group == BEHAVIOUR:
            stage = READING

    def define(run: CheckFunction) -> Check:
        title = " ".join((run.__doc__ or "").split("\n\n")[0].split())

        def run_if_possible(context: Context) -> Iterable[Finding]:
            for need in needs:
                need(context)
            return run(context)

        return Check(name, run_if_possible, title, group, stage, is_exclusive, thorough, leak)

    return define


def excused(excuses: Mapping[str, str]) -> Callable[[CheckFunction], CheckFunction]:
    """Allow differences to a project that is not `strict`: each Mismatch with such an excuse becomes the reason.

    excuses  name in the Mismatch -> the reason; an empty reason: say nothing
    """

    def define(run: CheckFunction) -> CheckFunction:
        @wraps(run)
        def judged(context: Context) -> Iterator[Finding]:
            for finding in run(context):
                name = ""
                if isinstance(finding, Mismatch) and not context.strict:
                    name = finding.excuse
                if not name:
                    yield finding
                elif why := excuses[name]:
                    yield NotTried(why)

        return judged

    return define


def require_strict(reason: str) -> Need:
    """The need of a check that a project skips, for this reason, unless it is `strict`."""

    def need(context: Context) -> None:
        if not context.strict:
            raise NotTried(reason)

    return need
