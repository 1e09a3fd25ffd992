"""What is made and in what order, and what is left of it."""

from __future__ import annotations

from bench.catalog import catalog
from bench.faults.begin import Request, make_plan
from bench.faults.fault import Fault
from bench.faults.plan import MAX_REPEATS, Ledger, batches
from bench.results.faults import FaultOutcome, FaultsPlan
from bench.serve.case import CannotRun, Case
from tests.cases import kit


def nothing(scene):
    """Nothing."""
    yield


class Resolved(Case):
    """A case of nothing."""

    def __init__(self, breaks=(), **settings):
        object.__setattr__(self, "_settings", {"listener": "plain", **settings})
        object.__setattr__(self, "_breaks", dict(breaks))

    settings = property(lambda self: self._settings)
    breaks = property(lambda self: self._breaks)

    def changed(self, changes):
        return Resolved(self._breaks, **{**self._settings, **changes})


PLAIN = Fault("plain", nothing, "Nothing.", "replaced")
PICKY = Fault("picky", nothing, "Nothing.", "replaced", misfit=lambda case: "it does not fit")
TLS = Fault("tls", nothing, "Nothing.", "replaced", changes={"listener": "tls"})


def plan(**changes):
    default = {"stacks": ("one",), "layers": ("none",), "faults": (), "rounds": 1, "size": "s", "database": "sqlite"}
    return FaultsPlan(**{**default, "guards": {}, **changes})


def outcome(fault_id, status="ok"):
    return FaultOutcome(fault_id, "one", "none", "s", "sqlite", "plain", "replaced", 1, "now", status)


def resolved(stack, layer):
    return CannotRun("not installed") if stack == "gone" else Resolved()


def test_every_deployment_comes_once_a_round_with_all_its_faults():
    found = batches(plan(stacks=("one", "two"), rounds=2), [PLAIN, PICKY], resolved)
    assert [(batch.stack, batch.round) for batch in found] == [("one", 1), ("two", 1), ("one", 2), ("two", 2)]
    assert [(item.fault_id, item.skip) for item in found[0].items] == [
        ("one~none~s~sqlite~plain~r1", ""),
        ("one~none~s~sqlite~picky~r1", "it does not fit"),
    ]


def test_faults_that_need_other_values_have_a_deployment_of_their_own():
    first, second = batches(plan(), [PLAIN, TLS, PICKY], resolved)
    assert [item.fault.name for item in first.items] == ["plain", "picky"]
    assert [item.fault.name for item in second.items] == ["tls"]
    assert (first.name, second.name) == ("one~none~plain~r1", "one~none~tls~r1")


def test_faults_are_made_of_historic_stacks_only_where_they_are_named():
    assert make_plan(Request(kit())).stacks == catalog.read().usual_stacks
    assert make_plan(Request(kit(), stacks=("nginx-scgi",))).stacks == ("nginx-scgi",)


def test_what_cannot_run_is_skipped_with_its_reason():
    (batch,) = batches(plan(stacks=("gone",)), [PLAIN, PICKY], resolved)
    assert batch.case is None
    assert {item.skip for item in batch.items} == {"not installed"}


def test_what_a_stack_declares_is_known():
    (batch,) = batches(plan(), [PLAIN], lambda *_: Resolved({"plain": "it has no master"}))
    assert batch.items[0].declared == "it has no master"


def test_a_voided_outcome_is_made_again_so_often_and_no_more():
    ledger = Ledger([outcome("a"), outcome("b", "failed"), outcome("c", "voided")])
    assert [ledger.is_left(name) for name in "abcd"] == [False, False, True, True]
    for _ in range(MAX_REPEATS):
        assert ledger.is_left("c")
        ledger.add(outcome("c", "voided"))
    assert not ledger.is_left("c")
    assert ledger.attempts("c") == 1 + MAX_REPEATS
