"""Verdicts on published conclusions, and the claims as data."""

from __future__ import annotations

import pytest

from bench.figures.stats import Estimate
from bench.report.reproduction import claims, measured
from bench.report.reproduction.measured import MeasuredFigures
from bench.results import reproduction, stability
from bench.results.records import Outcome
from bench.results.trials import Trial
from bench.verify.suite import all_checks
from tests.bench.report.faults.fault_folder import outcome
from tests.bench.report.reproduction.test_undecided import HERE
from tests.bench.report.reproduction.test_undecided import measured as of_stacks

NAMES = list(reproduction.benchmarks())


METRICS = {*measured.COMPUTED, "stability", *(field for field in Trial.__dataclass_fields__)}


@pytest.mark.parametrize("benchmark", NAMES)
def test_claims_and_columns_are_of_figures_that_exist(benchmark):
    data = reproduction.benchmarks()[benchmark]
    for column in data["columns"]:
        assert column["metric"] in METRICS
    for claim in data["claims"]:
        assert claim["claim"].endswith((".", ")."))
        assert claim.get("metric", "requests_per_second") in claims.METRIC_WORDS
        kinds = {"order", "rating", "fails", "loses", "check", "survives", "untested"} & claim.keys()
        kinds = kinds or {"right"} & claim.keys()
        assert len(kinds) == 1, claim["claim"]
        if "right" in claim and "survives" not in claim:
            assert {"at_least", "at_most"} & claim.keys(), claim["claim"]
            published = claim.get("published")
            verdict = published and claims.judge(Estimate(published, published, published, 2), *bounds(claim))
            assert verdict in (None, claims.HOLDS), f"not even published figures bear it out: {claim['claim']}"


def bounds(claim: dict) -> tuple[float | None, float | None]:
    return claim.get("at_least"), claim.get("at_most")


@pytest.mark.parametrize("benchmark", NAMES)
def test_without_a_figure_every_claim_is_not_measured(benchmark):
    parts = reproduction.parts_of(benchmark)
    found = claims.verdicts(
        reproduction.benchmarks()[benchmark], MeasuredFigures([], [(part, "it is gone") for part in parts])
    )
    untested = {claim["claim"] for claim in reproduction.benchmarks()[benchmark]["claims"] if "untested" in claim}
    assert not [item.sentence for item in found if "it is gone" not in item.sentence and item.claim not in untested]
    assert {item.verdict for item in found} == {claims.NOT_MEASURED}
    assert all(item.sentence.startswith("Not measured: ") or "was not measured" in item.sentence for item in found)


@pytest.mark.parametrize(
    ("low", "high", "at_least", "at_most", "verdict"),
    [
        (2.1, 3.0, 2, None, claims.HOLDS),
        (1.9, 3.0, 2, None, claims.INCONCLUSIVE),
        (1.0, 1.9, 2, None, claims.NOT),
        (0.95, 1.05, 0.9, 1.1, claims.HOLDS),
        (0.95, 1.15, 0.9, 1.1, claims.INCONCLUSIVE),
        (1.2, 1.5, 0.9, 1.1, claims.NOT),
        (0.2, 0.4, None, 0.5, claims.HOLDS),
    ],
)
def test_the_whole_interval_decides(low, high, at_least, at_most, verdict):
    assert claims.judge(Estimate((low + high) / 2, low, high, 5), at_least, at_most) == verdict


def rating(**found: str | None) -> stability.Rating:
    known = {name: found.get(name, "HIGH") for name in stability.BOUNDS}
    parts = tuple(stability.Criterion(name, None if word is None else 0.0, word) for name, word in known.items())
    words = [word for word in known.values() if word]
    return stability.Rating(max(words, key=stability.ORDER.index), parts)


@pytest.mark.parametrize(
    ("found", "wanted", "because", "verdict"),
    [
        ({}, "HIGH", (), claims.HOLDS),
        ({"errors": "LOW"}, "HIGH", (), claims.NOT),
        ({"spread": "LOW"}, "HIGH", (), claims.INCONCLUSIVE),  # the machine may have done that
        ({"spread": "LOW"}, "LOW", (), claims.INCONCLUSIVE),
        ({"spread": "LOW", "errors": "LOW"}, "HIGH", (), claims.NOT),
        ({"spread": "MEDIUM", "errors": "LOW"}, "LOW", (), claims.HOLDS),
        ({"spread": None}, "HIGH", (), claims.INCONCLUSIVE),  # one round
        ({"spread": None, "errors": "MEDIUM"}, "MEDIUM", (), claims.INCONCLUSIVE),
        ({"spread": None, "kills": "LOW"}, "LOW", ("kills",), claims.HOLDS),  # whatever the spread
        ({"kills": "LOW"}, "LOW", ("kills", "absence"), claims.HOLDS),
        ({"errors": "LOW"}, "LOW", ("kills", "absence"), claims.INCONCLUSIVE),  # LOW, but not because of that
        ({}, "LOW", ("kills", "absence"), claims.NOT),
    ],
)
def test_a_rating_by_spread_alone_proves_nothing(found, wanted, because, verdict):
    made, doubt = claims.judge_rating(rating(**found), wanted, because)
    assert made == verdict
    assert bool(doubt) is (verdict == claims.INCONCLUSIVE)


def test_reasons_of_a_rating_are_criteria():
    named = [claim for data in reproduction.benchmarks().values() for claim in data["claims"] if "because" in claim]
    assert named
    for claim in named:
        assert set(claim["because"]) <= set(stability.BOUNDS)


def test_questions_left_open_are_no_published_conclusions():
    found = [
        claims.ClaimVerdict("a", claims.HOLDS, ""),
        claims.ClaimVerdict("b", claims.NOT, ""),
        claims.ClaimVerdict("c", claims.HOLDS, "", is_open=True),
        claims.ClaimVerdict("d", claims.NOT_MEASURED, "", is_open=True),
    ]
    assert claims.summary(found) == (
        "1 of 2 published conclusions holds here and 1 does not. "
        "The publication left 2 questions open; of the answers tested here 1 holds and 1 was not measured."
    )
    assert claims.summary([*found[:2], found[3]]).endswith(
        " The publication left one question open; the answer tested here was not measured."
    )


def test_one_round_proves_nothing():
    assert claims.judge(Estimate(9.0, 9.0, 9.0, 1), 1, None) == claims.INCONCLUSIVE


def places(benchmark: str):
    """Every place that a benchmark's rows and claims name, with what is said of all of them."""
    data = reproduction.benchmarks()[benchmark]
    here = data.get("here", {})
    yield from ({**here, **{key: row[key] for key in ("stack", "layer", "size") if key in row}} for row in data["rows"])
    for claim in data["claims"]:
        if "loses" in claim:
            continue
        for place in (*(claim[side] for side in ("left", "right") if side in claim), *claim.get("order", [])):
            for stack in place.get("stacks", [place.get("stack")]):
                yield {**here, **place, **({"stack": stack} if stack else {})}


@pytest.mark.parametrize("benchmark", NAMES)
def test_every_place_is_measured_by_some_part(benchmark):
    """A row or claim about what no part measures could never be anything but "not measured"."""
    data = reproduction.benchmarks()[benchmark]
    measured = {
        (stack, layer, name, size)
        for part in data["parts"]
        for stack in part["stacks"]
        for layer in part["layers"]
        for name in part["workloads"]
        for size in part.get("sizes", ["unlimited"])
    }
    for place in places(benchmark):
        wanted = {"size": "unlimited", "layer": "none", **place}
        assert tuple(wanted[key] for key in ("stack", "layer", "workload", "size")) in measured


def test_every_fault_of_a_claim_is_made_by_some_part():
    for data in reproduction.benchmarks().values():
        made = {
            (stack, fault) for part in data.get("faults", []) for stack in part["stacks"] for fault in part["faults"]
        }
        assert made == {(claim["left"]["stack"], claim["loses"]) for claim in data["claims"] if "loses" in claim}


CLAIM = {"claim": "It loses nothing.", "loses": "configuration", "left": {"stack": "one"}}
REFUSED = {"servers": {"one": "restarted"}, "operator": "restart, 9 requests refused"}


@pytest.mark.parametrize(
    ("rounds", "verdict", "sentence"),
    [
        ([{}, {}], claims.HOLDS, "`one` took over its configuration 2 times under load and lost 0 of 242 requests."),
        ([{}], claims.INCONCLUSIVE, "`one` took over its configuration 1 time under load and lost 0 of 121 requests."),
        (
            [{}, {"failed_new": 9, **REFUSED}],
            claims.NOT,
            "`one` took over its configuration 2 times under load and lost 9 of 242 requests; a server of it cannot "
            "reload as it is started here, so it was restarted.",
        ),
        (
            [{"status": "voided", "reason": "interference: other processes took 36 %"}],
            claims.NOT_MEASURED,
            "Not measured: `one`: interference: other processes took 36 %.",
        ),
        ([], claims.NOT_MEASURED, "Not measured: `one`: not part of these runs."),
    ],
)
def test_a_claim_about_lost_requests(rounds, verdict, sentence):
    outcomes = [outcome("one", "configuration", number, **more) for number, more in enumerate(rounds, 1)]
    (found,) = claims.verdicts({"claims": [CLAIM]}, MeasuredFigures([], [], outcomes))
    assert (found.verdict, found.sentence) == (verdict, sentence)


def answered(*counts: int) -> list[measured.Answered]:
    """Trials that failed after so many answers; one below zero did not fail."""
    return [measured.Answered(abs(count), count > 0) for count in counts]


@pytest.mark.parametrize(
    ("left", "right", "verdict"),
    [
        ([6000, 6100], [3000, 3100], claims.HOLDS),
        ([-6000, -6100], [3000, 3100], claims.HOLDS),  # it did not fail at all
        ([3000, 3100], [3000, 3100], claims.NOT),
        ([3000, 6100], [3000, 3100], claims.INCONCLUSIVE),
        ([-3000, -3100], [3000, 3100], claims.INCONCLUSIVE),  # it might have gone on
        ([6000, 6100], [-3000, -3100], claims.INCONCLUSIVE),  # so might the other one
        ([6000], [3000], claims.INCONCLUSIVE),
    ],
)
def test_how_far_a_load_gets_before_it_fails(left, right, verdict):
    assert claims._further(answered(*left), answered(*right), 1.5) == verdict


def test_a_claim_about_how_far_a_load_gets(tmp_path):
    lost = {("b", number): "failed" for number in (1, 2)}
    found = of_stacks(tmp_path, {"a": [100, 100], "b": [100, 100]}, lost, answers=100)
    claim = {"claim": "x", "left": {"stack": "a"}, "right": {"stack": "b"}, "survives": 1.5}
    (verdict,) = claims.verdicts({"here": HERE, "claims": [claim]}, found)
    assert verdict.verdict == claims.HOLDS
    assert verdict.sentence.startswith("`a`: 0 of 2 trials failed, with ")
    assert verdict.sentence.endswith("; `b`: 2 of 2 trials failed, with 100 answers in the median.")


@pytest.mark.parametrize(
    ("checks", "verdict", "sentence"),
    [
        ([Outcome("a", "none", "shared", True)], claims.HOLDS, "Verified on `a` (`shared`): it is shared."),
        (
            [Outcome("a", "none", "shared", True, not_tried="no service")],
            claims.NOT_MEASURED,
            "Not measured: `a`: no service.",
        ),
        ([], claims.NOT_MEASURED, "Not measured: `a`: not part of these runs."),
        (
            [Outcome("a", "none", "shared", False, "a hit", "none")],
            claims.NOT,
            "On `a` not: expected a hit, got none.",
        ),
    ],
)
def test_a_claim_that_a_check_decides(tmp_path, checks, verdict, sentence):
    claim = {"claim": "x", "left": {"stack": "a"}, "check": "shared", "says": "it is shared"}
    (found,) = claims.verdicts({"here": HERE, "claims": [claim]}, of_stacks(tmp_path, {"a": [1, 2]}, checks=checks))
    assert (found.verdict, found.sentence) == (verdict, sentence)


def test_a_check_that_decides_a_claim_is_one_of_verify():
    named = [
        claim["check"] for data in reproduction.benchmarks().values() for claim in data["claims"] if "check" in claim
    ]
    assert named
    assert set(named) <= {item.name for item in all_checks()}


@pytest.mark.parametrize(
    ("status", "verdict", "sentence"),
    [
        ("voided", claims.NOT, "At 16 connections, `a` failed in 0 of 2 trials and had 0 errors besides 400 answers."),
        ("failed", claims.HOLDS, "At 16 connections, `a` failed in 2 of 2 trials and had 0 errors besides 0 answers."),
    ],
)
def test_errors_are_errors_of_a_voided_trial_too(tmp_path, status, verdict, sentence):
    found = of_stacks(tmp_path, {"a": [100, 100]}, {("a", number): status for number in (1, 2)})
    claim = {"claim": "x", "left": {"stack": "a"}, "fails": True}
    (said,) = claims.verdicts({"here": HERE, "claims": [claim]}, found)
    assert (said.verdict, said.sentence) == (verdict, sentence)
