"""Which published conclusions hold here: each claim of published.toml computed from the figures, with a sentence.

A claim holds where the whole 95 % interval of its ratio lies inside the bounds, does not hold where all of it lies
outside, and is inconclusive between the two, or with one round. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from bench.figures.stats import Spread
from bench.report.numbers import as_published, joined, number, plural
from bench.report.reproduction.reading import Place, Reading, name_of
from bench.results import stability

HOLDS, NOT, INCONCLUSIVE, NOT_MEASURED = "holds", "does not hold", "inconclusive", "not measured"
VERDICTS = (HOLDS, NOT, INCONCLUSIVE, NOT_MEASURED)
ALONE = {HOLDS: HOLDS, NOT: NOT, INCONCLUSIVE: "is inconclusive", NOT_MEASURED: "was not measured"}

# What a ratio is of, with its verb.
OF = {
    "requests_per_second": ("serves", "requests/s"),
    "memory_total": ("takes", "memory"),
    "memory_idle": ("takes", "idle memory"),
    "memory_added": ("adds", "memory beyond idle"),
    "latency_mean_ms": ("has", "mean latency"),
    "latency_max_ms": ("has", "longest request"),
    "cpu_per_1000": ("takes", "CPU time for 1,000 requests"),
}


@dataclass(frozen=True)
class Finding:
    """What these runs say about one published claim."""

    claim: str
    verdict: str  # one of VERDICTS
    sentence: str
    published: float | None = None
    measured: Spread | None = None
    bounds: str = ""
    is_open: bool = False  # a question that the publication left open, and no conclusion of it


def findings(data: Mapping[str, Any], reading: Reading) -> list[Finding]:
    """One finding for each claim of a benchmark, in their order."""
    here = data.get("here", {})
    return [replace(_finding(claim, here, reading), is_open=bool(claim.get("left_open"))) for claim in data["claims"]]


def summary(found: list[Finding]) -> str:
    """`5 of 8 published conclusions hold here, 1 does not, 2 are inconclusive.`, and what was left open there."""
    published, left_open = ([item for item in found if item.is_open is kind] for kind in (False, True))
    holds = sum(item.verdict == HOLDS for item in published)
    verb = "holds" if holds == 1 else "hold"
    text = joined([f"{holds} of {plural(len(published), 'published conclusion')} {verb} here", *_rest(published)]) + "."
    if len(left_open) == 1:
        text += f" The question left open there, put as a conclusion here, {ALONE[left_open[0].verdict]}."
    elif left_open:
        holds = sum(item.verdict == HOLDS for item in left_open)
        answered = [f"{holds} {'holds' if holds == 1 else 'hold'}"] if holds else []
        told = joined([*answered, *_rest(left_open)])
        text += f" Of {len(left_open)} questions left open there, put as conclusions here, {told}."
    return text


def _rest(found: list[Finding]) -> list[str]:
    """How many do not hold, are inconclusive and were not measured, as far as there are any."""
    wrong, open_, unknown = (sum(item.verdict == verdict for item in found) for verdict in VERDICTS[1:])
    parts = [f"{wrong} {'does' if wrong == 1 else 'do'} not"] if wrong else []
    parts += [f"{open_} {'is' if open_ == 1 else 'are'} inconclusive"] if open_ else []
    parts += [f"{unknown} {'was' if unknown == 1 else 'were'} not measured"] if unknown else []
    return parts


def _finding(claim: Mapping[str, Any], here: Place, reading: Reading) -> Finding:
    if "untested" in claim:
        return Finding(claim["claim"], NOT_MEASURED, f"Not measured: {claim['untested']}.")
    if "order" in claim:
        return _order(claim, here, reading)
    if "rating" in claim:
        return _rating(claim, here, reading)
    if "fails" in claim:
        return _fails(claim, here, reading)
    return _ratio(claim, here, reading)


def _ratio(claim: Mapping[str, Any], here: Place, reading: Reading) -> Finding:
    metric = claim.get("metric", "requests_per_second")
    left, right = ({**here, **claim[side]} for side in ("left", "right"))
    ratio, why = reading.ratio(left, right, metric)
    names = _named(left, right, metric, reading), _named(right, left, metric, reading)
    published = claim.get("published")
    if ratio is None:
        return Finding(claim["claim"], NOT_MEASURED, f"Not measured: {why}.", published, None, _bounds(claim))
    verb, what = OF[metric]
    sentence = (
        f"{_upper(names[0])} {verb} {number(ratio.median)} times the {what} of {names[1]}{_both(claim)}{_range(ratio)}"
    )
    sentence += f"; published {as_published(published)}." if published is not None else "."
    verdict = judge(ratio, claim.get("at_least"), claim.get("at_most"))
    return Finding(claim["claim"], verdict, sentence, published, ratio, _bounds(claim))


def judge(ratio: Spread, at_least: float | None, at_most: float | None) -> str:
    """What the whole interval of a ratio says about the bounds."""
    if ratio.count < 2:
        return INCONCLUSIVE
    if (at_least is not None and ratio.high < at_least) or (at_most is not None and ratio.low > at_most):
        return NOT
    inside = (at_least is None or ratio.low >= at_least) and (at_most is None or ratio.high <= at_most)
    return HOLDS if inside else INCONCLUSIVE


def _order(claim: Mapping[str, Any], here: Place, reading: Reading) -> Finding:
    """Each place against the one before it: the claim is as good as its weakest step."""
    metric, places = claim.get("metric", "requests_per_second"), claim["order"]
    steps, verdicts = [], []
    for before, after in pairwise(places):
        before, after = {**here, **before}, {**here, **after}
        ratio, why = reading.ratio(after, before, metric)
        names = name_of(_told(after, before)), name_of(_told(before, after))
        if ratio is None:
            verdicts.append(NOT_MEASURED)
            steps.append(f"{names[0]} against {names[1]} was not measured ({why})")
        else:
            verdicts.append(judge(ratio, claim.get("at_least"), None))
            steps.append(f"{names[0]} serves {number(ratio.median)} times {names[1]}{_range(ratio)}")
    worst = next(verdict for verdict in (NOT, NOT_MEASURED, INCONCLUSIVE, HOLDS) if verdict in verdicts)
    return Finding(claim["claim"], worst, f"{_upper('; '.join(steps))}.", claim.get("published"), None, _bounds(claim))


def _rating(claim: Mapping[str, Any], here: Place, reading: Reading) -> Finding:
    rating, why = reading.stability({**here, **claim["left"]})
    name = name_of(claim["left"])
    if rating is None:
        return Finding(claim["claim"], NOT_MEASURED, f"Not measured: {name}: {why}.")
    verdict, doubt = judge_rating(rating, claim["rating"], claim.get("because", ()))
    most, began = reading.most_requests({**here, **claim["left"]}), claim.get("began_at_request")
    if verdict == NOT and began and most < began:
        verdict = INCONCLUSIVE
        doubt = (
            f" Its longest trial made {plural(most, 'request')}; there the trouble began at about request {began:,}."
        )
    reasons = f": {'; '.join(rating.reasons)}" if rating.reasons else ""
    published = "" if claim.get("left_open") else f"; published {claim['rating']}"
    sentence = f"The stability of {name} is {rating.rating} here{reasons}{published}.{doubt}"
    return Finding(claim["claim"], verdict, sentence)


def judge_rating(rating: stability.Rating, wanted: str, because: Collection[str] = ()) -> tuple[str, str]:
    """Whether a rating bears a claim out, and a sentence of doubt where it is inconclusive.

    Rounds may lie apart because of the machine, so a verdict must be the same without that part of the formula; and
    where the claim says why, the parts that say so must be among those that count.
    """
    verdict = HOLDS if rating.rating == wanted else NOT
    others = [part.rating for part in rating.parts if part.rating is not None and part.name != "spread"]
    steady = max(others, key=stability.ORDER.index, default=None)
    if "spread" in rating.unknown and rating.rating != stability.ORDER[-1]:  # nothing makes it worse than that
        return INCONCLUSIVE, " One round has no spread, which is part of the rating."
    if (steady == wanted) is not (rating.rating == wanted):
        other = f"it would be {steady}" if steady else "there is no rating"
        return INCONCLUSIVE, f" Without the spread between the rounds, which may be the machine's, {other}."
    if verdict == HOLDS and because and not any(part.name in because for part in rating.parts if part.rating == wanted):
        return INCONCLUSIVE, " That is not for the reason that was published."
    return verdict, ""


def _fails(claim: Mapping[str, Any], here: Place, reading: Reading) -> Finding:
    _, rows = reading.rows({**here, **claim["left"]})
    name = name_of(claim["left"])
    row = rows[0] if rows else None
    if row is None or not (row.ok or row.failed):
        why = reading.figure({**here, **claim["left"]}, "requests_per_second").why
        return Finding(claim["claim"], NOT_MEASURED, f"Not measured: {name}: {why}.")
    errors = row.errors() or 0
    wrong = bool(row.failed or errors)
    verdict = HOLDS if wrong == claim["fails"] else NOT
    trials = len(row.ok) + len(row.failed)
    sentence = (
        f"At {row.setting.load}, {name} failed in {len(row.failed)} of {plural(trials, 'trial')} "
        f"and gave {plural(errors, 'error')} in {plural(row.requests, 'answer')}."
    )
    return Finding(claim["claim"], verdict, sentence)


def _named(place: Place, other: Place, metric: str, reading: Reading) -> str:
    """A place in words; of several stacks, that it is their median, and of how many."""
    name = name_of(_told(place, other))
    return f"the median of {name}, {reading.figure(place, metric).of} measured" if "stacks" in place else name


def _both(claim: Mapping[str, Any]) -> str:
    """The stack of both sides, where the claim names one that their names leave out."""
    stacks = {claim[side].get("stack") for side in ("left", "right")}
    same = claim["left"].get("stack") if len(stacks) == 1 else None
    return f", both with `{same}`" if same else ""


def _told(place: Place, other: Place) -> Place:
    """What of a place tells it from the other one; all of it where that is nothing."""
    return {key: value for key, value in place.items() if other.get(key) != value} or place


def _range(ratio: Spread) -> str:
    if ratio.count < 2:
        return " (one round only)"
    return f" ({number(ratio.low)} to {number(ratio.high)} over {ratio.count} rounds)"


def _bounds(claim: Mapping[str, Any]) -> str:
    low, high = claim.get("at_least"), claim.get("at_most")
    if low is not None and high is not None:
        return f"{as_published(low)} to {as_published(high)}"
    if low is not None:
        return f"at least {as_published(low)}"
    return f"at most {as_published(high)}" if high is not None else ""


def _upper(text: str) -> str:
    """The text with a capital where it begins with a plain word."""
    return text if text.startswith("`") else text[:1].upper() + text[1:]
