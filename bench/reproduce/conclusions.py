"""Which published conclusions hold here: each claim of a publication, judged by the runs that repeat it. Pure.

A claim about a ratio holds when the whole 95 % interval lies inside its bounds, and does not hold when the whole
interval lies outside. Otherwise it is open.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from bench.records.trials import Trial
from bench.reproduce import stability
from bench.reproduce.figures import ERRORS, Figures, name_of
from bench.reproduce.published import Claim, Place, Publication
from bench.words import plural

HOLDS, NOT, OPEN, NOT_MEASURED = "holds", "does not hold", "open", "not measured"


@dataclass(frozen=True)
class Conclusion:
    """What the runs say of a published claim.

    ratio, low, high  as measured here, with its 95 % interval; None for a claim that is about no ratio
    bounds            within which the claim holds
    says              what was measured, or why nothing was
    left_open         the publication asked it and did not answer
    """

    claim: str
    verdict: str
    says: str = ""
    published: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    bounds: str = ""
    left_open: bool = False


def conclusions(publication: Publication, figures: Figures) -> list[Conclusion]:
    """One for each claim, in their order."""
    found = []
    for claim in publication.claims:
        judge = next(judge for is_of, judge in JUDGES if is_of(claim))
        left, right = ({**publication.here, **place} for place in (claim.left, claim.right))
        it = judge(claim, left, right, figures)
        found.append(replace(it, claim=claim.claim, published=claim.published, left_open=claim.left_open))
    return found


def _untested(claim: Claim, _left: Place, _right: Place, _figures: Figures) -> Conclusion:
    return _unknown(claim.untested)


def _unknown(why: str) -> Conclusion:
    return Conclusion("", NOT_MEASURED, why)


def _ratio(claim: Claim, left: Place, right: Place, figures: Figures) -> Conclusion:
    ratio, why = figures.ratio(left, right, claim.metric)
    if ratio is None:
        return _unknown(why)
    names = (_apart(one, other) for one, other in ((left, right), (right, left)))
    return _judged(claim, ratio, " to ".join(names) + f", {claim.metric.replace('_', ' ')}")


def _judged(claim: Claim, ratio: tuple[float, float, float], says: str) -> Conclusion:
    estimate, low, high = ratio
    least = claim.at_least or 0.0
    most = math.inf if claim.at_most is None else claim.at_most
    verdict = NOT if high < least or low > most else HOLDS if least <= low and high <= most else OPEN
    words = [f"at least {claim.at_least:g}"] if claim.at_least is not None else []
    words += [f"at most {claim.at_most:g}"] if claim.at_most is not None else []
    known = low > 0 and not math.isinf(high)
    bounds = " and ".join(words)
    return Conclusion("", verdict, says, None, estimate, low if known else None, high if known else None, bounds)


def _order(claim: Claim, left: Place, _right: Place, figures: Figures) -> Conclusion:
    """Each place against the one before it; the worst step is the verdict."""
    steps = []
    for before, after in pairwise({**left, **place} for place in claim.order):
        steps.append(_ratio(claim, after, before, figures))
    worst = next(it for verdict in (NOT, NOT_MEASURED, OPEN, HOLDS) for it in steps if it.verdict == verdict)
    return replace(worst, says="; ".join(f"{it.says}: {it.ratio:.3g}" if it.ratio else it.says for it in steps))


def _rating(claim: Claim, left: Place, _right: Place, figures: Figures) -> Conclusion:
    """Rounds may vary because of the machine, so the verdict must be the same without the spread between them."""
    found = figures.find(left)
    rating = stability.rate(found.trials)
    if rating.rating is None or not found.trials:
        return _unknown(found.why or "no trial to judge by")
    holds = rating.rating == claim.rating
    says = f"{rating.rating}" + (f": {'; '.join(rating.reasons)}" if rating.reasons else "")
    unknown = [item.name for item in rating.criteria if item.rating is None]
    reasons = {item.name for item in rating.criteria if item.rating == claim.rating}
    longest = max(trial.requests_total or 0 for trial in found.trials)
    doubts = {
        "one round has no spread": stability.SPREAD in unknown and rating.rating != stability.LOW,
        "the spread between rounds may be the machine's": (rating.without(stability.SPREAD) == claim.rating) != holds,
        "the published reason is another": holds and bool(claim.because) and not reasons & set(claim.because),
        f"its longest trial made {plural(longest, 'request')}, fewer than those after which trouble began": not holds
        and longest < claim.began_at_request,
    }
    doubt = next((words for words, applies in doubts.items() if applies), "")
    return Conclusion("", OPEN if doubt else HOLDS if holds else NOT, says + (f" ({doubt})" if doubt else ""))


def _fails(claim: Claim, left: Place, _right: Place, figures: Figures) -> Conclusion:
    found = figures.find(left)
    trials = [trial for trial in found.highest if trial.status in ("ok", "failed", "voided")]
    if not trials:
        return _unknown(found.why)
    # The figures of a voided trial are not to be trusted, but errors are errors.
    failed = sum(trial.status == "failed" for trial in trials)
    errors = sum(getattr(trial, name) or 0 for trial in trials for name in ERRORS)
    says = f"{failed} of {plural(len(trials), 'trial')} failed, {plural(errors, 'error')} at level {trials[0].level}"
    return Conclusion("", HOLDS if bool(failed or errors) == claim.fails else NOT, says)


def _survives(claim: Claim, left: Place, right: Place, figures: Figures) -> Conclusion:
    """All trials of one side must get so many times as far as all of the other; one that did not fail might go on."""
    sides = [figures.find(place) for place in (left, right)]
    counts = [[count for trial in side.highest if (count := _answers(trial)) is not None] for side in sides]
    for place, side, found in zip((left, right), sides, counts, strict=True):
        if not found:
            return _unknown(f"{name_of(place)}: {side.why}")
    failed = [sum(trial.status == "failed" for trial in side.highest) for side in sides]
    one, two = counts
    says = "; ".join(
        f"{_apart(place, other)}: {count} of {plural(len(got), 'trial')} failed, {statistics.median(got):,.0f} answers"
        for place, other, count, got in zip((left, right), (right, left), failed, counts, strict=True)
    )
    times = claim.survives or 1.0
    verdict = OPEN
    if failed[1] and min(len(one), len(two)) > 1:
        if min(one) >= times * max(two):
            verdict = HOLDS
        elif failed[0] == len(one) and max(one) < times * min(two):
            verdict = NOT
    return Conclusion("", verdict, says)


def _answers(trial: Trial) -> int | None:
    return trial.requests_total if trial.status == "ok" else trial.answers_before_failure


def _loses(claim: Claim, left: Place, _right: Place, figures: Figures) -> Conclusion:
    outcomes, why = figures.faults(left, claim.loses)
    if not outcomes:
        return _unknown(why)
    lost = sum(outcome.failed or 0 for outcome in outcomes)
    asked = sum((outcome.requests_new or 0) + (outcome.requests_kept or 0) for outcome in outcomes)
    says = f"{lost:,} of {plural(asked, 'request')} lost in {plural(len(outcomes), 'round')}"
    return Conclusion("", NOT if lost else HOLDS if len(outcomes) > 1 else OPEN, says)


def _check(claim: Claim, left: Place, _right: Place, figures: Figures) -> Conclusion:
    outcome, why = figures.check(left, claim.check)
    if outcome is None:
        return _unknown(why)
    says = claim.says if outcome.ok else f"expected {outcome.expected}, got {outcome.got}"
    return Conclusion("", HOLDS if outcome.ok else NOT, says)


def _apart(place: Place, other: Place) -> str:
    """What a place has that the other one has not, and what is served there."""
    own = {key: value for key, value in place.items() if other.get(key) != value and key not in ("stacks", "pick")}
    if not own.keys() & {"name", "stack", "layer"}:
        own["stack"] = place.get("stack")
    return name_of(own)


Judge = Callable[[Claim, Place, Place, Figures], Conclusion]
# What a claim is about -> how it is judged.
JUDGES: Sequence[tuple[Callable[[Claim], object], Judge]] = (
    (lambda claim: claim.untested, _untested),
    (lambda claim: claim.order, _order),
    (lambda claim: claim.rating, _rating),
    (lambda claim: claim.fails is not None, _fails),
    (lambda claim: claim.survives, _survives),
    (lambda claim: claim.loses, _loses),
    (lambda claim: claim.check, _check),
    (lambda claim: True, _ratio),
)
