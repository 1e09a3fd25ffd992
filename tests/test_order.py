"""The longest tests begin first, and tests that belong together stay together."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from types import SimpleNamespace

from bench import paths
from tests.order import longest_first


@dataclass(frozen=True)
class Item:
    """The attributes of a collected test that the order reads."""

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

pytestmark = pytest.mark.hosts


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("release", ["debian12", "debian13"])
def test_it(release, number):
    with pathlib.Path(__file__).with_name(f"{release}{pathlib.Path(__file__).stem}").open("a") as by:
        print(os.environ["PYTEST_XDIST_WORKER"], file=by)
"""


def test_the_tests_of_a_file_and_a_release_share_their_hosts(tmp_path):
    """As `make test-hosts` distributes them."""
    (words,) = re.findall(r"(?m)pytest -m hosts (-n .*) \$\(ARGS\)$", (paths.KIT / "Makefile").read_text())
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_xdist_make_scheduler\n")
    for name in ("test_one.py", "test_two.py"):
        (tmp_path / name).write_text(TESTS)
    options = ["-p", "no:django", "-p", "no:cacheprovider", "-W", "ignore"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *words.split(), "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(paths.KIT), "DJANGO_SETTINGS_MODULE": "config.settings"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    written = [path.read_text().split() for path in tmp_path.glob("debian*")]
    assert [(len(processes), len(set(processes))) for processes in written] == [(6, 1)] * 4
    assert len({process for processes in written for process in processes}) == 4
