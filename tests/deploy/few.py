"""The cases of `make test` among many that prove much the same: as few as show each fact once. The others are for
`make test-matrix`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import pytest

from bench.serve.catalog import catalog

# A stack, or a stack with a layer.
Case = str | tuple[str, str]
Facts = Callable[..., set[Hashable]]
# No package registry has it, so that its stacks show nothing here.
MISSING = "cherokee"


def covering(cases: Sequence[Case], facts: Facts) -> list[Case]:
    """As few of the cases as have every fact between them, those with most first."""
    shown = {case: facts(case) for case in cases if MISSING not in (case if isinstance(case, str) else case[0])}
    left, chosen = set[Hashable]().union(*shown.values()), []
    while left:
        chosen.append(max(shown, key=lambda case: len(left & shown[case])))
        left -= shown[chosen[-1]]
    return chosen


def few(cases: Sequence[Case], facts: Facts) -> list[object]:
    """The cases as parameters of a test; all except those have the mark `matrix`."""
    chosen = covering(cases, facts)
    return [
        pytest.param(*([case] if isinstance(case, str) else case), marks=[] if case in chosen else pytest.mark.matrix)
        for case in cases
    ]


def of_stack(name: str) -> set[Hashable]:
    """The facts that a stack shows: its servers, the one that speaks to clients, and the protocols between them."""
    servers = catalog.read().stacks[name].servers
    spoken = {("speaks", server.speaks) for server in servers[:-1]}
    return {*(server.name for server in servers), ("front", servers[-1].name), *spoken}
