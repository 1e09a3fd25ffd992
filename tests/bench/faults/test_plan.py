"""What is made and in what order, and what is left of it."""

from __future__ import annotations

from dataclasses import replace

from bench.catalog import catalog
from bench.faults.fault import Fault
from bench.faults.plan import faults_of, make_plan
from bench.measure.plan import Request
from bench.records.records import Plan
from bench.serve.case import CannotRun, Case
from tests.bench.measure.fake_instrument import fake_case
from tests.bench.records.run_data import INFO
from tests.cases import kit


def nothing(scene):
    """Nothing."""
    yield


class Changed(Case):
    """A case of nothing that can be served with other values."""

    declares, breaks = (), {}

    def changed(self, changes):
        return self


PLAIN = Fault("plain", "replaced", "Nothing.", nothing)
PICKY = Fault("picky", "replaced", "Nothing.", nothing, misfit=lambda case: "it does not fit")
TLS = Fault("tls", "replaced", "Nothing.", nothing, changes={"listener": "tls"})


def plan(**changes) -> Plan:
    return replace(INFO.plan, **{"workloads": (), "levels": (), "faults": ("plain",), "guards": {}, **changes})


def resolved(stack, layer):
    if stack == "gone":
        return CannotRun("not installed")
    return Changed(**vars(fake_case(stack, layer)))


def test_every_deployment_comes_once_a_round_with_all_its_faults():
    found = faults_of(plan(stacks=("one", "two"), rounds=2), [PLAIN, PICKY], resolved)
    assert [(batch.stack, batch.round) for batch in found.batches] == [("one", 1), ("two", 1), ("one", 2), ("two", 2)]
    assert [item.key for item in found.batches[0].items] == ["one~none~unlimited~sqlite~plain~r1"]
    skipped = found.skipped[0]
    assert (skipped.fault_id, skipped.reason) == ("one~none~unlimited~sqlite~picky~r1", "it does not fit")


def test_faults_that_need_other_values_have_a_deployment_of_their_own():
    first, second = faults_of(plan(), [PLAIN, TLS, PLAIN], resolved).batches
    assert [item.fault.name for item in first.items] == ["plain", "plain"]
    assert [item.fault.name for item in second.items] == ["tls"]


def test_faults_are_made_of_historic_stacks_only_where_they_are_named():
    assert make_plan(Request(kit()), ()).stacks == catalog.read().usual_stacks
    assert make_plan(Request(kit(), stacks=("nginx-scgi",)), ()).stacks == ("nginx-scgi",)


def test_what_cannot_run_is_skipped_with_its_reason():
    found = faults_of(plan(stacks=("gone",)), [PLAIN, PICKY], resolved)
    assert found.batches == ()
    assert {outcome.reason for outcome in found.skipped} == {"not installed"}
