"""Verdicts on published conclusions: each claim of a publication, judged by the runs of a reproduction. Pure.

A claim about a ratio holds when the whole 95 % interval lies inside the bounds, and does not hold when the whole
interval lies outside. Otherwise the claim is inconclusive.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

from bench.words import INCONCLUSIVE, NOT_MEASURED, plural
from reproductions import stability
from reproductions.figures import Figures, name_of
from reproductions.published import Claim, Place, Publication

Judge = Callable[[Claim, Place, Place, Figures], "Conclusion"]
HOLDS, NOT = "holds", "does not hold"


@dataclass(frozen=True)
class Conclusion:
    """The runs' verdict on a published claim.

    says              the measurement in words, or the reason for none
    ratio, low, high  as measured here, with the 95 % interval; None for a claim without a ratio
    """

    claim: Claim
    verdict: str
    says: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


def conclusions(publication: Publication, figures: Figures) -> list[Conclusion]:
    """One for each claim, in their order."""
    results = []
    for claim in publication.claims:
        about = (judge for name, judge in JUDGES.items() if getattr(claim, name) not in (None, "", []))
        left, right = ({**publication.here, **place} for place in (claim.left, claim.right))
        results.append(next(about, _ratio)(claim, left, right, figures))
    return results


def _ratio(claim: Claim, left: Place, right: Place, figures: Figures) -> Conclusion:
    ratio, why = figures.ratio(left, right, claim.metric)
    if ratio is None:
        return Conclusion(claim, NOT_MEASURED, why)
    estimate, low, high = ratio
    says = f"{_apart(left, right)} to {_apart(right, left)}, {claim.metric.replace('_', ' ')}"
    known = low > 0 and not math.isinf(high)
    return Conclusion(claim, within(claim, low, high), says, estimate, low if known else None, high if known else None)


def within(claim: Claim, low: float, high: float) -> str:
    """The verdict on a claim about a ratio with this interval."""
    least = claim.at_least or 0.0
    most = math.inf if claim.at_most is None else claim.at_most
    if high < least or low > most:
        return NOT
    return HOLDS if least <= low and high <= most else INCONCLUSIVE


def _order(claim: Claim, left: Place, _right: Place, figures: Figures) -> Conclusion:
    """Each place against the one before it; the worst step is the verdict."""
    steps = []
    for before, after in pairwise({**left, **place} for place in claim.order):
        steps.append(_ratio(claim, after, before, figures))
    worst = min(steps, key=lambda step: (NOT, NOT_MEASURED, INCONCLUSIVE, HOLDS).index(step.verdict))
    return replace(worst, says="; ".join(f"{it.says}: {it.ratio:.3g}" if it.ratio else it.says for it in steps))


def _rating(claim: Claim, left: Place, _right: Place, figures: Figures) -> Conclusion:
    """Rounds may vary because of the machine, so the verdict must be the same without the spread between rounds."""
    figure = figures.find(left)
    rated = stability.rate(figure.trials)
    rating, reasons = stability.worst(rated), stability.reasons(rated)
    if rating is None or not figure.trials:
        return Conclusion(claim, NOT_MEASURED, figure.why or "no trial to judge by")
    holds = rating == claim.rating
    says = rating + (f": {'; '.join(reasons)}" if reasons else "")
    same = {name for name, (own, _) in rated.items() if own == claim.rating}
    without_spread = stability.worst(rated, without=stability.SPREAD)
    longest = max(trial.requests for trial in figure.trials)
    doubts = {
        "one round has no spread": rated[stability.SPREAD][0] is None and rating != stability.LOW,
        "the spread between rounds may be the machine's": (without_spread == claim.rating) != holds,
        "the published reason is another": holds and bool(claim.because) and not same & set(claim.because),
        f"its longest trial made {plural(longest, 'request')}, fewer than those after which trouble began": not holds
        and longest < claim.began_at_request,
    }
    if doubt := next((words for words, applies in doubts.items() if applies), ""):
        return Conclusion(claim, INCONCLUSIVE, f"{says} ({doubt})")
    return Conclusion(claim, HOLDS if holds else NOT, says)


def _fails(claim: Claim, left: Place, _right: Place, figures: Figures) -> Conclusion:
    figure = figures.find(left)
    trials = [trial for trial in figure.highest if trial.status in ("ok", "failed", "discarded")]
    if not trials:
        return Conclusion(claim, NOT_MEASURED, figure.why)
    # The figures of a discarded trial are not to be trusted, but errors are errors.
    failed = sum(trial.status == "failed" for trial in trials)
    errors = sum(trial.errors.total for trial in trials)
    says = f"{failed} of {plural(len(trials), 'trial')} failed, {plural(errors, 'error')} at level {trials[0].level}"
    return Conclusion(claim, HOLDS if bool(failed or errors) == claim.fails else NOT, says)


def _survives(claim: Claim, left: Place, right: Place, figures: Figures) -> Conclusion:
    """All trials of one side must get so many times as far as all of the other; a trial without failure might go on."""
    counts, failed, says = [], [], []
    for place, other in ((left, right), (right, left)):
        figure = figures.find(place)
        requests = [it.requests if it.status == "ok" else it.errors.responses_before_failure for it in figure.highest]
        got = [count for count in requests if count is not None]
        if not got:
            return Conclusion(claim, NOT_MEASURED, f"{name_of(place)}: {figure.why}")
        counts.append(got)
        failed.append(sum(trial.status == "failed" for trial in figure.highest))
        responses = f"{statistics.median(got):,.0f} responses"
        says.append(f"{_apart(place, other)}: {failed[-1]} of {plural(len(got), 'trial')} failed, {responses}")
    one, two = counts
    times = claim.survives or 1.0
    verdict = INCONCLUSIVE
    if failed[1] and min(len(one), len(two)) > 1:
        if min(one) >= times * max(two):
            verdict = HOLDS
        elif failed[0] == len(one) and max(one) < times * min(two):
            verdict = NOT
    return Conclusion(claim, verdict, "; ".join(says))


def _loses(claim: Claim, left: Place, _right: Place, figures: Figures) -> Conclusion:
    outcomes, why = figures.faults(left, claim.loses)
    if not outcomes:
        return Conclusion(claim, NOT_MEASURED, why)
    lost = sum(outcome.failed or 0 for outcome in outcomes)
    requests = sum((outcome.requests_new or 0) + (outcome.requests_kept or 0) for outcome in outcomes)
    says = f"{lost:,} of {plural(requests, 'request')} lost in {plural(len(outcomes), 'round')}"
    if lost:
        return Conclusion(claim, NOT, says)
    return Conclusion(claim, HOLDS if len(outcomes) > 1 else INCONCLUSIVE, says)


def _check(claim: Claim, left: Place, _right: Place, figures: Figures) -> Conclusion:
    outcome, why = figures.check(left, claim.check)
    if outcome is None:
        return Conclusion(claim, NOT_MEASURED, why)
    says = claim.says if outcome.ok else f"expected {outcome.expected}, got {outcome.got}"
    return Conclusion(claim, HOLDS if outcome.ok else NOT, says)


def _apart(place: Place, other: Place) -> str:
    """The differences of a place from another one, and the served site."""
    own = {key: value for key, value in place.items() if other.get(key) != value and key not in ("stacks", "pick")}
    if not own.keys() & {"name", "stack", "layer"}:
        own["stack"] = place.get("stack")
    return name_of(own)


# What a claim is about -> how it is judged; one about none of these is about a ratio.
JUDGES: dict[str, Judge] = {
    "untested": lambda claim, *_: Conclusion(claim, NOT_MEASURED, claim.untested),
    "order": _order,
    "rating": _rating,
    "fails": _fails,
    "survives": _survives,
    "loses": _loses,
    "check": _check,
}
