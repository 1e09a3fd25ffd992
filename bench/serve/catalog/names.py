"""Names of stacks' variants and for the absence of something, as command lines, results and reports spell them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

# A case without a caching layer, and one without a limit of resources.
NO_LAYER, NO_LIMIT = "none", "unlimited"


def variants(stacks: Iterable[str], setting: str, values: Sequence[str]) -> tuple[str, ...]:
    """The stacks with each of these values, such as `STACK@python=3.13`; unchanged without any."""
    if not values:
        return tuple(stacks)
    names = []
    for stack, value in product(stacks, values):
        separator = "@"
        if "@" in stack:
            separator = ","
        names.append(f"{stack}{separator}{setting}={value}")
    return tuple(names)
