"""What takes longest begins first, and what belongs together stays together."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

from tests.order import hosts_of, longest_first


@dataclass(frozen=True)
class Item:
    """What the order asks of a test that pytest has collected."""

    nodeid: str
    of_module: str = ""
    own: str = ""

    def get_closest_marker(self, name: str) -> bool:
        return name in (self.of_module, self.own)

    def getparent(self, kind: type) -> SimpleNamespace:
        return SimpleNamespace(own_markers=[SimpleNamespace(name=self.of_module)])


BOOTED = [Item(f"booted::{number}", of_module="long") for number in range(4)]
SLOW = [Item(f"slow::{number}", own="long") for number in range(2)]
SERVED = [Item(f"{name}::{number}", of_module="servers") for name in ("one", "two") for number in range(3)]
QUICK = [Item(f"quick::{number}") for number in range(8)]


def test_each_process_begins_with_what_is_long_and_a_long_module_is_of_one():
    ordered = longest_first([*QUICK, *SERVED, *BOOTED, *SLOW], 2)
    assert ordered[:10] == [*BOOTED, SLOW[1], *SERVED[:3], *QUICK[:2]]
    assert ordered[10:] == [SLOW[0], *SERVED[3:], *QUICK[2:]]


def test_one_process_takes_them_as_they_are():
    assert longest_first([*QUICK, *BOOTED], 1) == [*QUICK, *BOOTED]


def test_the_tests_of_a_module_share_the_hosts_of_a_release():
    on = [SimpleNamespace(nodeid="m::t[x]", callspec=SimpleNamespace(params={"host": name})) for name in (12, 13, None)]
    assert [hosts_of(item) for item in (*on, BOOTED[0])] == ["m-12", "m-13", "m", "booted"]
