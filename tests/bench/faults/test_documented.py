"""docs/faults.md has every fault, with its group and what may be lost."""

from __future__ import annotations

import re

from bench import paths
from bench.catalog import catalog
from bench.faults.fault import Expected
from bench.faults.kinds import FAULTS
from bench.faults.visitors import rate_of
from bench.report.faults import texts


def test_every_fault_is_documented_with_what_is_expected():
    text = (paths.PROJECT / "docs" / "faults.md").read_text("utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| (\w+) \| .* \| (\w+) \|$", text, re.M)
    lost = {name: fault.expected.lost for name, fault in FAULTS.items()}
    expected = [(name, fault.group, "any" if lost[name] is None else str(lost[name])) for name, fault in FAULTS.items()]
    assert rows == expected


def test_what_else_than_usual_is_expected_is_documented():
    text = (paths.PROJECT / "docs" / "faults.md").read_text("utf-8")
    assert f"within {Expected().recovery_s:g} s of the end of the cause" in text
    of_fault = {row.split("`")[1]: row for row in text.splitlines() if row.startswith("| `")}
    unlike = [fault for fault in FAULTS.values() if fault.expected.recovery_s not in (None, Expected().recovery_s)]
    assert [f"Recovery within {item.expected.recovery_s:g} s" in of_fault[item.name] for item in unlike] == [True]
    assert [name for name in FAULTS if FAULTS[name].expected.stale is None] == ["broken-application"]
    assert "pages may be stale" in of_fault["broken-application"]
    untimed = [name for name in FAULTS if FAULTS[name].expected.recovery_s is None]
    assert untimed == ["slow-headers", "slow-bodies", "slow-readers"]
    assert "no recovery is timed" in of_fault["slow-headers"]


def test_the_rate_of_the_visitors_is_said_as_it_is():
    assert rate_of(90) == 30
    text = (paths.PROJECT / "docs" / "faults.md").read_text("utf-8")
    assert f"at a third of what the deployment can do, {rate_of(10**6)} requests a second at most" in text
    assert f"a third of the capacity and {rate_of(10**6)} at most" == texts.RATE


def test_only_faults_that_exist_are_declared():
    known = catalog.read()
    parts = [*known.stacks.values(), *known.layers.values()]
    servers = [server for part in parts for server in part.servers]
    declared = [(item.fault, item.reason) for part in (*parts, *servers) for item in part.breaks]
    assert declared
    assert all(fault in FAULTS and reason for fault, reason in declared)
