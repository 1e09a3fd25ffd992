"""Which deployment to pick over all workloads of a run: how sure that is, what it costs, whether it is safe. Pure."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from bench.figures.ratios import Standings
from bench.report import ratings, safety
from bench.report.findings import deployment_name, interval, is_bounded, quoted, setting_title, some
from bench.report.model import BASELINE, FAILED, VOIDED, CaseRow, Report, rate_of
from bench.report.numbers import MIB, joined, number, plural
from bench.report.overall import Deployment, Question, questions
from bench.results.trials import voided_by

IN_95 = "in 95 of 100 repetitions of this run"

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
    """The answer to a question: the deployment to pick, and those that tie with it.

    chosen  the leader, or the simplest of those that tie
    """

    report: Report
    question: Question
    standings: Standings[Deployment]
    chosen: Deployment

    @property
    def tied(self) -> list[Deployment]:
        """The others that may be the best."""
        both = (self.standings.leader, *self.standings.tied)
        return [key for key in both if key != self.chosen]

    @property
    def rows(self) -> list[CaseRow]:
        """Its ranked rows, one a workload."""
        return self.question.rows(self.chosen)

    @property
    def proven(self) -> bool:
        """Whether the rounds show how large chance is; one round does not."""
        return self.standings.proven or (len(self.question.deployments) == 1 and min(self._rounds) > 1)

    @property
    def _rounds(self) -> list[int]:
        return [len(row.ok) for row in self.rows]

    @property
    def where(self) -> str:
        """On which workloads."""
        titles = [setting_title(self.report, panel) for panel in self.question.panels]
        if len(titles) == 1:
            return f"on {titles[0]}"
        return f"over {'both' if len(titles) == 2 else f'all {len(titles)}'} workloads, {joined(titles)}"


def pick(report: Report, *, short: bool = False) -> list[Advice]:
    """The answer, most important first; a sentence for each size and database of the run.

    `short` leaves out what it gains, safety, stability, the command for production and the answer without caching.
    """
    choices = [choice for question in questions(report) if (choice := _choose(report, question))]
    if not choices:
        return [Advice("Pick", f"Nothing was measured, so there is nothing to pick. {_why_nothing(report)}")]
    found = [("Pick", " ".join(map(_headline, choices)))]
    for choice in choices[:1]:
        found += _about(choice, short)
    found.append(("Not ranked", _not_ranked(report)))
    return [Advice(topic, sentence) for topic, sentence in found if sentence]


def last_lines(report: Report) -> list[str]:
    """The answer for a terminal: what to pick, what it gains and costs, and the command for production."""
    shown = ("Pick", "Confidence", "Gain", "Cost", "In production")
    return [advice.sentence.replace("`", "") for advice in pick(report) if advice.topic in shown]


def _about(choice: Choice, short: bool) -> list[tuple[str, str]]:
    """What else there is to say of the choice, by topic; of one that is not proven, only what it takes to prove one."""
    if not choice.proven:
        return [("Confidence", f"More rounds may prove one: {quoted('python -m bench run --until decided')}.")]
    more = f"More rounds may tell them apart: {quoted('run --until decided')}."
    sure = ("Confidence", more if choice.tied and not choice.report.run.info.plan.until else "")
    cost = ("Cost", _cost(choice))
    if short:
        return [sure, cost]
    verified = safety.verdict(choice.report, *choice.chosen)
    return [
        sure,
        ("Gain", _gain(choice)),
        cost,
        ("In production", _command(choice)),
        ("Safety", f"It {verified}" if verified else ""),
        ("Stability", _stability(choice)),
        ("Without caching", _without_caching(choice)),
    ]


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


def _choose(report: Report, question: Question) -> Choice | None:
    """The deployment that leads, or the simplest of those that tie; None when none has figures on every workload."""
    found = question.standings
    if found is None:
        return None
    tied = found.proven and found.tied
    return Choice(report, question, found, question.simplest((found.leader, *found.tied)) if tied else found.leader)


def _headline(choice: Choice) -> str:
    name, standings = deployment_name(*choice.chosen), choice.standings
    if not choice.proven:
        rounds = max(len(row.ok) for panel in choice.question.panels for row in panel.ranked)
        proof = "one round proves" if rounds == 1 else "so few figures prove"
        return f"No pick yet: {name} has the highest figure {choice.where}, but {proof} no difference."
    if len(choice.question.deployments) == 1:
        return f"{name} is the only deployment with figures {choice.where}, so there is nothing to compare it with."
    if not choice.tied:
        ratio, other = min(((standings.ratios[key], key) for key in standings.slower), key=lambda item: item[0].ratio)
        return (
            f"Pick {name}: {choice.where}, it serves {number(ratio.ratio)} times the requests/s of the next, "
            f"{deployment_name(*other)} ({IN_95} {interval(ratio)} times)."
        )
    others = some([deployment_name(*key) for key in choice.tied])
    ratio = standings.ratios[choice.chosen]
    sure = f" ({IN_95} the best serves at most {number(ratio.high)} times its requests/s)" if is_bounded(ratio) else ""
    return f"Pick {name}: {choice.where}, it ties with {others}{sure}, and {_why_simplest(choice)}."


def _why_simplest(choice: Choice) -> str:
    """Why the chosen deployment is simpler than those that tie with it."""
    question, keys = choice.question, [choice.chosen, *choice.tied]
    own, *others = (question.programs(key) for key in keys)
    if own and all(others) and own < min(others):
        return f"it is simpler: {plural(own, 'program')}, not {_counts(others)}"
    memory, *more = (question.memory(key) for key in keys)
    if memory is not None and all(need is not None for need in more):
        needs = [need / MIB for need in more if need is not None]
        same = "with as few programs " if own and min(others) == own else ""
        own_need, their_need = number(memory / MIB), _between(needs)
        if own_need == their_need:
            return f"{same}each needs {own_need} MiB: no other is simpler"
        return f"{same}it needs the least memory: {own_need} MiB, not {their_need}"
    return "nothing measured says which is simpler"


def _counts(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"


def _gain(choice: Choice) -> str:
    """What the layer gains over none on the same stack."""
    stack, layer = choice.chosen
    question = choice.question
    if layer == BASELINE:
        tried = any(key[0] == stack and key != choice.chosen for key in question.deployments)
        return "No layer measured on this stack is proven faster than none." if tried else ""
    ratio = question.gain(choice.chosen)
    if ratio is None:
        return f"Layer {quoted(BASELINE)} has no figures on this stack, so the gain of the layer is not known."
    text = f"It serves {number(ratio.ratio)} times the requests/s of the same stack without a layer"
    if math.isfinite(ratio.high):
        text += f" ({IN_95} {interval(ratio)} times)"
    if len(question.panels) == 1:
        return f"{text}."
    each = [
        f"{number(rate_of(row) / rate_of(bare))} times on {setting_title(choice.report, panel)}"
        for panel in question.panels
        if (row := question.row(panel, choice.chosen)) and (bare := question.row(panel, (stack, BASELINE)))
    ]
    return f"{text}: {joined(each)}."


def _cost(choice: Choice) -> str:
    memory = [row.memory_total.median / MIB for row in choice.rows if row.memory_total]
    cpu = [row.cpu_total.median for row in choice.rows if row.cpu_total]
    parts = [f"{_between(memory)} MiB of peak memory"] if memory else []
    parts += [f"{_between(cpu)} CPU seconds per 1,000 requests"] if cpu else []
    return f"It uses {joined(parts)}." if parts else "Memory and CPU time were not measured."


def _command(choice: Choice) -> str:
    """The command that renders the deployment for production."""
    stack, layer = choice.chosen
    option = "" if layer == BASELINE else f" --layer {layer}"
    return f"Render it with {quoted(f'python -m bench render {stack}{option} --values production --to DIR')}."


def _between(values: list[float]) -> str:
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def _stability(choice: Choice) -> str:
    found = ratings.worst(choice.report, *choice.chosen)
    if found is None:
        return ""
    reasons = f": {'; '.join(found.reasons)}" if found.reasons else ""
    return f"Its stability is {found.rating}{reasons}."


def _without_caching(choice: Choice) -> str:
    """The stack to pick where nothing may be cached; the simplest of those that tie."""
    bare = choice.question.standings_of(lambda key: key[1] == BASELINE)
    if choice.chosen[1] == BASELINE or bare is None or len(bare.ratios) < 2 or not bare.proven:
        return ""
    stack, _ = choice.question.simplest((bare.leader, *bare.tied))
    tied = [quoted(key[0]) for key in (bare.leader, *bare.tied) if key[0] != stack]
    why = f"it ties with {some(tied)} and is the simplest" if tied else "it serves the most without a layer"
    return f"If nothing may be cached, pick {quoted(stack)}: {why}."


def _not_ranked(report: Report) -> str:
    """Deployments that were tried and lack a valid figure, so that nobody takes them for slow."""
    found = []
    for outcome in (VOIDED, FAILED):
        rows = [row for panel in report.main_panels for row in panel.rows if row.outcome == outcome]
        if names := list(dict.fromkeys(deployment_name(row.stack, row.layer) for row in rows)):
            found.append(f"{some(names)} ({outcome})")
    return f"Not ranked on every workload: {'; '.join(found)}." if found else ""
