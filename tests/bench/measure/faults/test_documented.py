"""docs/faults.md has every fault, with its group and its allowed losses."""

from __future__ import annotations

import re

from bench import paths
from bench.measure.faults.fault import Expected
from bench.measure.faults.kinds import FAULTS
from bench.measure.faults.visitors import rate_of
from bench.serve.catalog import catalog

TEXT = (paths.KIT / "docs" / "faults.md").read_text("utf-8")


def test_every_fault_is_documented_with_what_is_expected():
    rows = re.findall(r"^\| `([\w-]+)` \| (\w+) \| (.*) \| (\w+) \|$", TEXT, re.M)
    expected = [(fault.name, fault.group, str(fault.expected.lost).replace("None", "any")) for fault in FAULTS.values()]
    assert [(name, group, lost) for name, group, _, lost in rows] == expected
    unlike = {name: FAULTS[name].expected.recovery_s for name, _, happens, _ in rows if "recover" in happens}
    assert unlike == {"broken-application": 5.0, "restarts": 5.0, "slow-headers": None}
    usual = f"within {Expected().recovery_s:g} s of the end of the cause"
    visitors = f"at most {rate_of(10**6)} requests/s"
    assert usual in TEXT and visitors in TEXT


def test_only_faults_that_exist_are_declared():
    known = catalog.read()
    parts = [*known.stacks.values(), *known.layers.values()]
    servers = [server for part in parts for server in part.servers]
    declared = [(item.fault, item.reason) for part in (*parts, *servers) for item in part.breaks]
    assert declared
    assert all(fault in FAULTS and reason for fault, reason in declared)
