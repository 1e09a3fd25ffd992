"""The published benchmarks as data: they lead to runs of what exists, and their figures bear out their conclusions."""

from __future__ import annotations

import pytest

from bench.cli import main
from bench.measure.faults import kinds
from bench.measure.records.trials import TrialFigures
from bench.measure.run import workload
from bench.serve.catalog import catalog
from bench.verify.suite import all_checks
from bench.words import NOT_MEASURED
from reproductions import stability
from reproductions.__main__ import _begun, _parser, options_of
from reproductions.conclusions import HOLDS, conclusions, within
from reproductions.figures import DEFAULTS, METRICS, Figures
from reproductions.published import publications
from tests.cases import kit

NAMES = list(publications())
PARTS = [(name, part.name) for name in NAMES for part in publications()[name].parts]


@pytest.mark.parametrize(("benchmark", "part"), PARTS)
def test_every_part_is_of_what_exists_and_quick_is_shorter(benchmark, part):
    full, quick = (publications()[benchmark].part(part, short) for short in (False, True))
    assert quick.rounds * max(quick.duration_s, 1) < full.rounds * (full.duration_s or 9)
    for stack in full.stacks:
        assert catalog.read().stack(stack)
    if full.faults:
        assert kinds.named(tuple(full.faults))
        return
    args = main.parser().parse_args(["run", *options_of(full)])
    assert (args.stack, args.connections, args.rounds) == (tuple(full.stacks), tuple(full.levels), full.rounds)
    for layer in full.layers:
        assert catalog.read().joined_layers(layer)
    for name in full.workloads:
        assert workload.workload(kit(), name)
    for size in full.sizes:
        assert size == "unlimited" or catalog.read().size(size)


def test_bounds_of_guards_are_passed_on_as_they_were_given(tmp_path):
    words = [NAMES[0], "--guard", "tool=0.8", "--guard", "drift=off", "--output", str(tmp_path / "made")]
    _, record = _begun(_parser().parse_args(words))
    assert record.guards == ("tool=0.8", "drift=off")


@pytest.mark.parametrize("benchmark", NAMES)
def test_claims_and_columns_are_of_figures_that_exist(benchmark):
    metrics = {*METRICS, "stability", *TrialFigures.__dataclass_fields__}
    published = publications()[benchmark]
    assert {column.metric for column in published.columns} | {claim.metric for claim in published.claims} <= metrics
    for claim in published.claims:
        assert set(claim.because) <= set(stability.CRITERIA)
        assert not claim.check or claim.check in {check.name for check in all_checks()}
        if claim.published and not claim.survives:
            verdict = within(claim, claim.published, claim.published)
            assert verdict == HOLDS, "not even published figures bear it out"


@pytest.mark.parametrize("benchmark", NAMES)
def test_every_place_is_measured_by_some_part(benchmark):
    """A claim about what no part measures could never be anything but "not measured"."""
    published = publications()[benchmark]
    measured = {
        (stack, layer, work, size)
        for part in published.parts
        for stack in part.stacks
        for layer in part.layers
        for work in part.workloads or [None]
        for size in part.sizes
    }
    places = [place for claim in published.claims for place in (claim.left, claim.right, *claim.order) if place]
    for place in ({**DEFAULTS, **published.here, **place} for place in [*places, *published.rows]):
        for stack in place.get("stacks", [place.get("stack")]):
            wanted = (stack, place["layer"], place["workload"], place["size"])
            assert wanted in measured or (stack, "none", None, "unlimited") in measured, place


@pytest.mark.parametrize("benchmark", NAMES)
def test_without_a_run_nothing_is_measured_and_the_reason_is_printed(benchmark):
    published = publications()[benchmark]
    left_out = {part.name: "it is gone" for part in published.parts}
    results = conclusions(published, Figures([], [], left_out, published.parts))
    assert {it.verdict for it in results} == {NOT_MEASURED}
    untested = {claim.claim for claim in published.claims if claim.untested}
    assert all(it.claim.claim in untested or it.says.endswith("it is gone") for it in results)
