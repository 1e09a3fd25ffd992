"""Which deployment to pick over all workloads of a run: how sure that is, what it costs, whether it is safe. Pure."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from bench.figures.ratios import Standings
from bench.report import ratings, safety
from bench.report.conditions import FEW_ROUNDS
from bench.report.findings import deployment_name, interval, quoted, setting_title, some, winners
from bench.report.model import BASELINE, FAILED, VOIDED, CaseRow, Panel, Report, rate_of
from bench.report.numbers import MIB, joined, number, plural
from bench.results.trials import voided_by

Deployment = tuple[str, str]  # stack, layer

# Guard -> what helps when it voids trial after trial.
REMEDIES = {
    "bodies": "See that nothing else writes to the database",
    "ceiling": "Give the load tool more cores (--pin), or take a faster one (--tool)",
    "drift": "Take longer trials (--duration) and a longer warm-up (--warmup) in a new run",
    "dropped": "Ask for fewer requests a second (--rate) in a new run",
    "late": "Stop other programs, or ask for fewer requests a second (--rate) in a new run",
    "others": "Stop other programs",
    "tool-cpu": "Give the load tool more cores (--pin), or take a faster one (--tool)",
}


@dataclass(frozen=True)
class Advice:
    """One sentence of the answer, and what it is about."""

    topic: str
    sentence: str


@dataclass(frozen=True)
class Choice:
    """The deployment to pick, the ones that tie with it, and the workloads they win."""

    report: Report
    panels: list[Panel]  # those with a ranked row
    chosen: Deployment
    ties: list[Deployment]
    wins: list[Panel]

    @property
    def who(self) -> str:
        """How sentences after the first name it."""
        return deployment_name(*self.chosen) if self.ties else "It"

    @property
    def rows(self) -> list[CaseRow]:
        """Its ranked rows, one a workload."""
        return [row for panel in self.panels if (row := _ranked(panel, self.chosen)) is not None]

    @property
    def proven(self) -> bool:
        """Whether the rounds of every panel show how large chance is; one round does not."""
        return all(
            panel.standings.proven or (len(panel.ranked) == 1 and len(panel.ranked[0].ok) > 1)
            for panel in self.panels
            if panel.standings
        )


def pick(report: Report, *, short: bool = False) -> list[Advice]:
    """The answer, most important first.

    `short` leaves out safety, stability and what to pick without caching.
    """
    choice = _choose(report)
    if choice is None:
        return [Advice("Pick", f"Nothing was measured, so there is nothing to pick. {_why_nothing(report)}")]
    found = [("Pick", _headline(choice)), ("Confidence", _confidence(choice)), ("Cost", _cost(choice))]
    if not short:
        verified = safety.verdict(report, *choice.chosen)
        found += [
            ("Safety", f"{choice.who} {verified}" if verified else ""),
            ("Stability", _stability(choice)),
            ("Without caching", _without_caching(choice)),
        ]
    found.append(("Not ranked", _not_ranked(choice)))
    return [Advice(topic, sentence) for topic, sentence in found if sentence]


def _why_nothing(report: Report) -> str:
    """Why no deployment has a figure: the guard that voided most trials, with its remedy."""
    findings = [finding for row in report.rows for trial in row.voided for finding in voided_by(trial)]
    if not findings:
        return "The reasons are under Left out."
    name, _ = Counter(name for name, _ in findings).most_common(1)[0]
    example = next(text for guard, text in findings if guard == name)
    voided = plural(sum(len(row.voided) for row in report.rows), "trial")
    remedy = REMEDIES.get(name, "Read what it found under Left out")
    again = quoted(report.run.resume_command(again=True))
    return f"Guards voided {voided}, most often {quoted(name)}: {example}. {remedy}, then make them again: {again}."


def _choose(report: Report) -> Choice | None:
    """The deployment that is fastest, or ties with the fastest, on most workloads; of ties that with least memory."""
    panels = [panel for panel in report.main_panels if panel.standings]
    if not panels:
        return None
    wins: dict[Deployment, list[Panel]] = {}
    for panel in panels:
        for row in winners(panel.standings):
            wins.setdefault((row.stack, row.layer), []).append(panel)
    most = max(map(len, wins.values()))
    first = [key for key, won in wins.items() if len(won) == most]
    first.sort(key=lambda key: -_weight(panels, key))
    needs = {key: memory for key in first if (memory := _peak_memory(panels, key)) is not None}
    chosen = min(needs, key=lambda key: needs[key]) if len(needs) > 1 else first[0]
    return Choice(report, panels, chosen, [key for key in first if key != chosen], wins[chosen])


def _weight(panels: list[Panel], key: Deployment) -> float:
    """Its share of the fastest rate, multiplied over all panels; 0 when it is not ranked in each."""
    rows = [_ranked(panel, key) for panel in panels]
    shares = [rate_of(row) / rate_of(panel.ranked[0]) for row, panel in zip(rows, panels, strict=True) if row]
    return math.prod(shares) if len(shares) == len(panels) else 0.0


def _peak_memory(panels: list[Panel], key: Deployment) -> float | None:
    """Its largest peak memory over all panels in bytes; None when one of them did not measure it."""
    totals = [row.memory_total for panel in panels if (row := _ranked(panel, key))]
    known = [total.median for total in totals if total]
    return max(known) if known and len(known) == len(totals) else None


def _ranked(panel: Panel, key: Deployment) -> CaseRow | None:
    return next((row for row in panel.ranked if _is(row, key)), None)


def _headline(choice: Choice) -> str:
    name, count = deployment_name(*choice.chosen), len(choice.panels)
    if count == 1:
        where = f"on {setting_title(choice.report, choice.panels[0])}"
    else:
        where = "on every workload" if len(choice.wins) == count else f"on {len(choice.wins)} of {count} workloads"
    if not choice.proven:
        rounds = max(len(row.ok) for panel in choice.panels for row in panel.ranked)
        proof = "one round proves" if rounds == 1 else "so few figures prove"
        return f"No pick yet: {name} has the highest figure {where}, but {proof} no difference."
    if not choice.ties:
        tied = any(panel.standings and panel.standings.tied for panel in choice.wins)
        return f"Pick {name}: it is fastest{', or ties with the fastest,' if tied else ''} {where}."
    names = [name, *(deployment_name(*key) for key in choice.ties)]
    return f"Pick {some(names, 'or')}: they tie {where}, so choose by cost and safety."


def _confidence(choice: Choice) -> str:
    """How certain the first place is: the smallest lead over another case, or how much the tied ones may differ."""
    if not choice.proven:
        return f"More rounds may prove one: run again with --rounds {FEW_ROUNDS}."
    found = [(panel, panel.standings) for panel in choice.wins if panel.standings]
    if choice.ties:
        return _tie(choice, found)
    leads = [
        (standings.ratios[row], panel, row)
        for panel, standings in found
        if not standings.tied
        for row in standings.slower
    ]
    if not leads:
        return ""
    lead, panel, other = min(leads, key=lambda item: item[0].low)
    where = f" on {setting_title(choice.report, panel)}" if len(choice.panels) > 1 else ""
    smallest = "Its smallest lead" if len(leads) > 1 else "Its lead"
    name = deployment_name(other.stack, other.layer)
    return (
        f"{smallest}{where} is {number(lead.ratio)} times the requests/s of {name} "
        f"(95 % confidence interval {interval(lead)}, {plural(lead.rounds, 'round')})."
    )


def _tie(choice: Choice, found: list[tuple[Panel, Standings[CaseRow]]]) -> str:
    """How much faster than the chosen deployment the fastest may be."""
    if not any(standings.tied for _, standings in found):
        return "Each is the fastest on other workloads."
    rounds = min(len(row.ok) for row in choice.rows)
    highs = [ratio.high for _, standings in found for row, ratio in standings.ratios.items() if _is(row, choice.chosen)]
    text = f"{plural(rounds, 'round')} {'do' if rounds > 1 else 'does'} not show which of them is the fastest"
    if math.isfinite(max(highs)):
        text += f"; it serves at most {number(max(highs))} times the requests/s of {deployment_name(*choice.chosen)}"
    return f"{text}. More rounds may: run again with --rounds {FEW_ROUNDS}." if rounds < FEW_ROUNDS else f"{text}."


def _is(row: CaseRow, key: Deployment) -> bool:
    return (row.stack, row.layer) == key


def _cost(choice: Choice) -> str:
    memory = [row.memory_total.median / MIB for row in choice.rows if row.memory_total]
    cpu = [row.cpu_total.median for row in choice.rows if row.cpu_total]
    parts = [f"{_between(memory)} MiB of peak memory"] if memory else []
    parts += [f"{_between(cpu)} CPU seconds per 1,000 requests"] if cpu else []
    if not parts:
        return "Memory and CPU time were not measured."
    needs = [_peak_memory(choice.panels, key) for key in (choice.chosen, *choice.ties)]
    cheapest = " It needs the least memory of these." if len([need for need in needs if need is not None]) > 1 else ""
    return f"{choice.who} uses {joined(parts)}.{cheapest}"


def _between(values: list[float]) -> str:
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def _stability(choice: Choice) -> str:
    found = ratings.worst(choice.report, *choice.chosen)
    if found is None:
        return ""
    reasons = f": {'; '.join(found.reasons)}" if found.reasons else ""
    whose = f"The stability of {choice.who}" if choice.ties else "Its stability"
    return f"{whose} is {found.rating}{reasons}."


def _without_caching(choice: Choice) -> str:
    """The stack to pick where nothing may be cached."""
    if choice.chosen[1] == BASELINE:
        return ""
    leaders: dict[str, list[str]] = {}
    for panel in choice.panels:
        bare = [row for row in panel.ranked if row.layer == BASELINE]
        if len(bare) > 1 and (names := [quoted(row.stack) for row in winners(panel.standings_of(bare))]):
            leaders.setdefault(some(names, "or"), []).append(setting_title(choice.report, panel))
    if not leaders:
        return ""
    if len(leaders) == 1:
        return f"If nothing may be cached, pick {next(iter(leaders))}."
    return f"If nothing may be cached, pick {joined([f'{who} on {joined(on)}' for who, on in leaders.items()])}."


def _not_ranked(choice: Choice) -> str:
    """Deployments that were tried and lack a valid figure, so that nobody takes them for slow."""
    found = []
    for outcome in (VOIDED, FAILED):
        rows = [row for panel in choice.panels for row in panel.rows if row.outcome == outcome]
        if names := list(dict.fromkeys(deployment_name(row.stack, row.layer) for row in rows)):
            found.append(f"{some(names)} ({outcome})")
    return f"Not ranked on every workload: {'; '.join(found)}." if found else ""
