"""Which published conclusions hold here: each claim of published.toml computed from the figures, with a sentence. Pure.

A claim holds when the whole confidence interval of its ratio lies inside the bounds. It does not hold when the
whole interval lies outside. Otherwise, or with a single round, it is inconclusive. The confidence is 95 % for all looks
together: rounds are added where a claim is open.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from bench.figures.stats import Estimate
from bench.figures.words import joined, plural
from bench.report.model import ERROR_FIELDS
from bench.report.numbers import as_published, number
from bench.report.reproduction.measured import Answered, MeasuredFigures, Place, name_of
from bench.results import stability

HOLDS, NOT, INCONCLUSIVE, NOT_MEASURED = "holds", "does not hold", "inconclusive", "not measured"
VERDICTS = (HOLDS, NOT, INCONCLUSIVE, NOT_MEASURED)
AS_SENTENCE = {HOLDS: "holds", NOT: "does not hold", INCONCLUSIVE: "is inconclusive", NOT_MEASURED: "was not measured"}

# Metric -> verb and name in a sentence.
METRIC_WORDS = {
    "requests_per_second": ("serves", "requests/s"),
    "memory_total": ("uses", "memory"),
    "memory_idle": ("uses", "idle memory"),
    "memory_added": ("adds", "memory beyond idle"),
    "latency_mean_ms": ("has", "mean latency"),
    "latency_max_ms": ("has", "longest request"),
    "cpu_per_1000": ("uses", "CPU time per 1,000 requests"),
}

Claim = Mapping[str, Any]


@dataclass(frozen=True)
class ClaimVerdict:
    """What these runs show about one published claim."""

    claim: str
    verdict: str  # one of VERDICTS
    sentence: str
    published: float | None = None
    measured: Estimate | None = None
    bounds: str = ""
    is_open: bool = False  # the publication left this question open


def verdicts(data: Mapping[str, Any], measured: MeasuredFigures) -> list[ClaimVerdict]:
    """One verdict for each claim of a benchmark, in their order."""
    here = data.get("here", {})
    return [replace(_verdict(claim, here, measured), is_open=bool(claim.get("left_open"))) for claim in data["claims"]]


def summary(found: list[ClaimVerdict]) -> str:
    """`5 of 8 published conclusions hold here, 1 does not, 2 are inconclusive.`, then the questions left open."""
    published = [item for item in found if not item.is_open]
    left_open = [item for item in found if item.is_open]
    holds = sum(item.verdict == HOLDS for item in published)
    verb = "holds" if holds == 1 else "hold"
    text = (
        joined([f"{holds} of {plural(len(published), 'published conclusion')} {verb} here", *_others(published)]) + "."
    )
    if len(left_open) == 1:
        verdict = AS_SENTENCE[left_open[0].verdict]
        return f"{text} The publication left one question open; the answer tested here {verdict}."
    if left_open:
        holds = sum(item.verdict == HOLDS for item in left_open)
        answered = [f"{holds} {'holds' if holds == 1 else 'hold'}"] if holds else []
        outcome = joined([*answered, *_others(left_open)])
        return f"{text} The publication left {len(left_open)} questions open; of the answers tested here {outcome}."
    return text


def _others(found: list[ClaimVerdict]) -> list[str]:
    """How many do not hold, are inconclusive or were not measured; without the zeros."""
    wrong, undecided, unknown = (sum(item.verdict == verdict for item in found) for verdict in VERDICTS[1:])
    parts = [f"{wrong} {'does' if wrong == 1 else 'do'} not"] if wrong else []
    parts += [f"{undecided} {'is' if undecided == 1 else 'are'} inconclusive"] if undecided else []
    parts += [f"{unknown} {'was' if unknown == 1 else 'were'} not measured"] if unknown else []
    return parts


def _verdict(claim: Claim, here: Place, measured: MeasuredFigures) -> ClaimVerdict:
    if "untested" in claim:
        return ClaimVerdict(claim["claim"], NOT_MEASURED, f"Not measured: {claim['untested']}.")
    if "order" in claim:
        return _order(claim, here, measured)
    if "rating" in claim:
        return _rating(claim, here, measured)
    if "fails" in claim:
        return _fails(claim, here, measured)
    if "loses" in claim:
        return _loses(claim, measured)
    if "check" in claim:
        return _checked(claim, here, measured)
    if "survives" in claim:
        return _survives(claim, here, measured)
    return _ratio(claim, here, measured)


def _loses(claim: Claim, measured: MeasuredFigures) -> ClaimVerdict:
    """Whether a fault loses no request, in every round."""
    name = name_of(claim["left"])
    outcomes, why = measured.faults(claim["left"], claim["loses"])
    if not outcomes:
        return ClaimVerdict(claim["claim"], NOT_MEASURED, f"Not measured: {name}: {why}.")
    lost = [outcome.failed or 0 for outcome in outcomes]
    asked = sum((outcome.requests_new or 0) + (outcome.requests_kept or 0) for outcome in outcomes)
    times = plural(len(outcomes), "time")
    what = f"{name} took over its configuration {times} under load and lost {sum(lost):,} of {plural(asked, 'request')}"
    restarted = any("restarted" in (outcome.servers or {}).values() for outcome in outcomes)
    how = "; a server of it cannot reload as it is started here, so it was restarted" if restarted else ""
    verdict = NOT if any(lost) else HOLDS if len(outcomes) > 1 else INCONCLUSIVE
    return ClaimVerdict(claim["claim"], verdict, f"{_upper(what)}{how}.")


def _checked(claim: Claim, here: Place, measured: MeasuredFigures) -> ClaimVerdict:
    """Whether a check of verify passed."""
    place = {**here, **claim["left"]}
    outcome, why = measured.check(place, claim["check"])
    name = name_of({key: value for key, value in place.items() if key in ("stack", "layer")})
    if outcome is None:
        return ClaimVerdict(claim["claim"], NOT_MEASURED, f"Not measured: {name}: {why}.")
    if outcome.ok:
        return ClaimVerdict(claim["claim"], HOLDS, f"Verified on {name} (`{claim['check']}`): {claim['says']}.")
    return ClaimVerdict(claim["claim"], NOT, f"On {name} not: expected {outcome.expected}, got {outcome.got}.")


def _survives(claim: Claim, here: Place, measured: MeasuredFigures) -> ClaimVerdict:
    """Whether one side answers so many times as many requests as the other before its load fails."""
    left, right = ({**here, **claim[side]} for side in ("left", "right"))
    found = {name_of(_different(place, other)): measured.answers(place) for place, other in _turned(left, right)}
    for name, (trials, why) in found.items():
        if not trials:
            return ClaimVerdict(claim["claim"], NOT_MEASURED, f"Not measured: {name}: {why}.", claim.get("published"))
    first, second = (trials for trials, _ in found.values())
    sentence = f"{_upper('; '.join(_how_far(name, trials) for name, (trials, _) in found.items()))}{_both(claim)}."
    verdict = _further(first, second, claim["survives"])
    return ClaimVerdict(claim["claim"], verdict, sentence, claim.get("published"))


def _turned(left: Place, right: Place) -> tuple[tuple[Place, Place], tuple[Place, Place]]:
    return (left, right), (right, left)


def _how_far(name: str, trials: Sequence[Answered]) -> str:
    """In how many trials it failed, and how far it got."""
    failed, median = sum(item.failed for item in trials), statistics.median(item.answers for item in trials)
    return f"{name}: {failed} of {plural(len(trials), 'trial')} failed, with {number(median)} answers in the median"


def _further(first: Sequence[Answered], second: Sequence[Answered], times: float) -> str:
    """Whether the first got so many times as far in all of its trials; one that did not fail might have gone on."""
    if not any(item.failed for item in second) or min(len(first), len(second)) < 2:
        return INCONCLUSIVE
    if min(item.answers for item in first) >= times * max(item.answers for item in second):
        return HOLDS
    ends = all(item.failed for item in first)
    worse = max(item.answers for item in first) < times * min(item.answers for item in second)
    return NOT if ends and worse else INCONCLUSIVE


def _ratio(claim: Claim, here: Place, measured: MeasuredFigures) -> ClaimVerdict:
    metric = claim.get("metric", "requests_per_second")
    left, right = ({**here, **claim[side]} for side in ("left", "right"))
    ratio, why = measured.ratio(left, right, metric)
    names = _named(left, right, metric, measured), _named(right, left, metric, measured)
    published = claim.get("published")
    if ratio is None:
        return ClaimVerdict(claim["claim"], NOT_MEASURED, f"Not measured: {why}.", published, None, _bounds(claim))
    verb, what = METRIC_WORDS[metric]
    sentence = (
        f"{_upper(names[0])} {verb} {number(ratio.median)} times the {what} of {names[1]}{_both(claim)}{_range(ratio)}"
    )
    sentence += f"; published {as_published(published)}." if published is not None else "."
    verdict = judge(ratio, claim.get("at_least"), claim.get("at_most"))
    return ClaimVerdict(claim["claim"], verdict, sentence, published, ratio, _bounds(claim))


def judge(ratio: Estimate, at_least: float | None, at_most: float | None) -> str:
    """The verdict of a ratio's whole interval against the bounds."""
    if ratio.count < 2:
        return INCONCLUSIVE
    if (at_least is not None and ratio.high < at_least) or (at_most is not None and ratio.low > at_most):
        return NOT
    inside = (at_least is None or ratio.low >= at_least) and (at_most is None or ratio.high <= at_most)
    return HOLDS if inside else INCONCLUSIVE


def _order(claim: Claim, here: Place, measured: MeasuredFigures) -> ClaimVerdict:
    """Each place against the one before it; the worst step is the verdict."""
    metric, places = claim.get("metric", "requests_per_second"), claim["order"]
    steps, found = [], []
    for first, second in pairwise(places):
        before, after = {**here, **first}, {**here, **second}
        ratio, why = measured.ratio(after, before, metric)
        names = name_of(_different(after, before)), name_of(_different(before, after))
        if ratio is None:
            found.append(NOT_MEASURED)
            steps.append(f"{names[0]} against {names[1]} was not measured ({why})")
        else:
            found.append(judge(ratio, claim.get("at_least"), None))
            steps.append(f"{names[0]} serves {number(ratio.median)} times {names[1]}{_range(ratio)}")
    worst = next(verdict for verdict in (NOT, NOT_MEASURED, INCONCLUSIVE, HOLDS) if verdict in found)
    sentence = f"{_upper('; '.join(steps))}."
    return ClaimVerdict(claim["claim"], worst, sentence, claim.get("published"), None, _bounds(claim))


def _rating(claim: Claim, here: Place, measured: MeasuredFigures) -> ClaimVerdict:
    place = {**here, **claim["left"]}
    rating, why = measured.stability(place)
    name = name_of(claim["left"])
    if rating is None:
        return ClaimVerdict(claim["claim"], NOT_MEASURED, f"Not measured: {name}: {why}.")
    verdict, doubt = judge_rating(rating, claim["rating"], claim.get("because", ()))
    longest, began = measured.most_requests(place), claim.get("began_at_request")
    if verdict == NOT and began and longest < began:
        verdict = INCONCLUSIVE
        doubt = f" Its longest trial made {plural(longest, 'request')}; the published trouble began at about {began:,}."
    reasons = f": {'; '.join(rating.reasons)}" if rating.reasons else ""
    published = "" if claim.get("left_open") else f"; published {claim['rating']}"
    sentence = f"The stability of {name} is {rating.rating} here{reasons}{published}.{doubt}"
    return ClaimVerdict(claim["claim"], verdict, sentence)


def judge_rating(rating: stability.Rating, wanted: str, because: Collection[str] = ()) -> tuple[str, str]:
    """Whether a rating confirms a claim, and a sentence of doubt when that is inconclusive.

    Rounds may vary because of the machine, so the verdict must be the same without the criterion `spread`. A claim that
    gives reasons (`because`) must be confirmed by one of them.
    """
    verdict = HOLDS if rating.rating == wanted else NOT
    others = [item.rating for item in rating.criteria if item.rating is not None and item.name != "spread"]
    steady = max(others, key=stability.ORDER.index, default=None)
    if "spread" in rating.unknown and rating.rating != stability.ORDER[-1]:  # the spread cannot lower a LOW
        return INCONCLUSIVE, " One round has no spread, which is one of the criteria."
    if (steady == wanted) is not (rating.rating == wanted):
        other = f"the rating would be {steady}" if steady else "there would be no rating"
        return INCONCLUSIVE, f" Without the spread between rounds, which the machine may cause, {other}."
    reasons = {item.name for item in rating.criteria if item.rating == wanted}
    if verdict == HOLDS and because and not reasons & set(because):
        return INCONCLUSIVE, " The published reason is another one."
    return verdict, ""


def _fails(claim: Claim, here: Place, measured: MeasuredFigures) -> ClaimVerdict:
    place = {**here, **claim["left"]}
    _, rows = measured.rows(place)
    name = name_of(claim["left"])
    row = rows[0] if rows else None
    if row is None or not (row.ok or row.failed or row.voided):
        why = measured.figure(place, "requests_per_second").why
        return ClaimVerdict(claim["claim"], NOT_MEASURED, f"Not measured: {name}: {why}.")
    # The figures of a voided trial are not to be trusted, but errors are errors.
    made = (*row.ok.values(), *row.voided)
    errors = sum(getattr(trial, field) or 0 for trial in made for field in ERROR_FIELDS)
    answers = sum(trial.requests_total or 0 for trial in made)
    verdict = HOLDS if bool(row.failed or errors) == claim["fails"] else NOT
    sentence = (
        f"At {row.setting.load}, {name} failed in {len(row.failed)} of {plural(len(made) + len(row.failed), 'trial')} "
        f"and had {plural(errors, 'error')} besides {plural(answers, 'answer')}."
    )
    return ClaimVerdict(claim["claim"], verdict, sentence)


def _named(place: Place, other: Place, metric: str, measured: MeasuredFigures) -> str:
    """A place in words; for several stacks that it is their median, and how many were measured."""
    name = name_of(_different(place, other))
    return f"the median of {name}, {measured.figure(place, metric).of} measured" if "stacks" in place else name


def _both(claim: Claim) -> str:
    """The stack of both sides, when the claim has one that their names leave out."""
    stacks = {claim[side].get("stack") for side in ("left", "right")}
    same = claim["left"].get("stack") if len(stacks) == 1 else None
    return f", both with `{same}`" if same else ""


def _different(place: Place, other: Place) -> Place:
    """The part of a place that differs from the other one; all of it when nothing does."""
    return {key: value for key, value in place.items() if other.get(key) != value} or place


def _range(ratio: Estimate) -> str:
    if ratio.count < 2:
        return " (one round only)"
    return f" ({number(ratio.low)} to {number(ratio.high)} over {ratio.count} rounds)"


def _bounds(claim: Claim) -> str:
    low, high = claim.get("at_least"), claim.get("at_most")
    if low is not None and high is not None:
        return f"{as_published(low)} to {as_published(high)}"
    if low is not None:
        return f"at least {as_published(low)}"
    return f"at most {as_published(high)}" if high is not None else ""


def _upper(text: str) -> str:
    """The text with a capital letter, unless it begins with code."""
    return text if text.startswith("`") else text[:1].upper() + text[1:]
