"""What takes longest begins first, and what belongs together stays together."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from types import SimpleNamespace

from bench import paths
from tests.order import longest_first


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


TESTS = """
import os, pathlib, pytest


@pytest.mark.parametrize("number", range(6))
def test_it(number):
    with pathlib.Path(__file__).with_suffix(".by").open("a") as by:
        print(os.environ["PYTEST_XDIST_WORKER"], file=by)
"""


def test_the_tests_of_a_file_share_their_hosts(tmp_path):
    """As `make test-hosts` distributes them."""
    (words,) = re.findall(r"(?m)pytest -m hosts (-n .*) \$\(ARGS\)$", (paths.KIT / "Makefile").read_text())
    for name in ("test_one.py", "test_two.py"):
        (tmp_path / name).write_text(TESTS)
    argv = [sys.executable, "-m", "pytest", "-p", "no:django", "-p", "no:cacheprovider", *words.split(), "."]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    for path in (tmp_path / "test_one.by", tmp_path / "test_two.by"):
        processes = path.read_text().split()
        assert (len(processes), len(set(processes))) == (6, 1)
