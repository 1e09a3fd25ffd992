"""The order of the tests: what takes longest begins first, in each process, and what takes no time fills the end."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

import pytest
from xdist.scheduler import LoadFileScheduling


def longest_first(items: Sequence[pytest.Item], processes: int) -> list[pytest.Item]:
    """The tests for so many processes, each of which gets an equal part of the list (`--dist worksteal`).

    A part begins with tests marked `long`, goes on with whole modules of tests marked `servers`, and ends with others.
    A module that is marked `long` itself stays together, too.
    One process takes them as they were collected.
    """
    if processes == 1:
        return list(items)
    long = [item for item in items if item.get_closest_marker("long")]
    servers = [item for item in items if item.get_closest_marker("servers") and item not in long]
    units = [list(group) for _, group in itertools.groupby(long, key=_together)]
    modules = [list(group) for _, group in itertools.groupby(servers, key=_module)]
    others = (item for item in items if not (item.get_closest_marker("long") or item.get_closest_marker("servers")))
    parts = [
        list(itertools.chain(*units[number::processes], *modules[number::processes])) for number in range(processes)
    ]
    return list(_filled(parts, others, len(items)))


class ByHost(LoadFileScheduling):
    """Gives the tests of a file that share the hosts of one release of Debian to one process."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        release = re.search(r"debian\d+", test)
        return f"{file} {release[0]}" if release else file


def _module(item: pytest.Item) -> str:
    return item.nodeid.split("::")[0]


def _together(item: pytest.Item) -> str:
    """The module's name if the module has the mark, else the test's own."""
    module = item.getparent(pytest.Module)
    return _module(item) if module and any(mark.name == "long" for mark in module.own_markers) else item.nodeid


def _filled(parts: list[list[pytest.Item]], others: Iterator[pytest.Item], total: int) -> Iterator[pytest.Item]:
    """The parts one after another, each filled up to its share of all tests."""
    left = total
    for number, part in enumerate(parts):
        share = left // (len(parts) - number)
        yield from part
        yield from itertools.islice(others, max(0, share - len(part)))
        left -= max(share, len(part))
    yield from others
