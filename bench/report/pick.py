"""Which deployment to pick over all workloads of a run: how sure that is, what it costs, whether it is safe. Pure."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from bench.figures.words import joined, plural
from bench.report import conditions, prices, safety
from bench.report.choice import Choice, choices, how_sure, why_simplest
from bench.report.findings import deployment_name, interval, is_bounded, quoted, setting_title, some
from bench.report.model import FAILED, VOIDED, Report, rate_of
from bench.report.numbers import number
from bench.report.overall import is_asked_rate
from bench.report.redact import redacted
from bench.results.records import NO_LAYER, options_of
from bench.results.trials import voided_by

IN_95 = "in 95 of 100 repetitions of this run"

# Guard -> what helps when it voids trial after trial.
REMEDIES = {
    "bodies": "See that nothing else writes to the database",
    "drift": "Take longer trials (--duration) in a new run",
    "interference": "Stop other programs",
    "lost": "Ask for fewer requests a second (--rate) in a new run",
    "tool": "Take a machine with more cores, or ask for fewer requests a second (--rate) in a new run",
}


@dataclass(frozen=True)
class Advice:
    """One sentence of the answer, and what it is about."""

    topic: str
    sentence: str


def pick(report: Report, *, short: bool = False) -> list[Advice]:
    """The answer, most important first: one sentence, what to know of it, and one for each other size and database.

    `short` leaves out what it gains, safety, the command for production and the answer without caching.
    """
    found = choices(report)
    if not found and any(panel.ranked for panel in report.main_panels):
        return [Advice("Pick", _no_pick_at_a_rate())]
    if not found:
        return [Advice("Pick", f"Nothing was measured, so there is nothing to pick. {_why_nothing(report)}")]
    main = next((choice for choice in found if choice.proven), found[0])
    said = [("Pick", headline(main)), *_about(main, short)]
    said += [(f"With {choice.place}", _beside(choice, main)) for choice in found if choice is not main]
    said.append(("Not ranked", _not_ranked(report)))
    return [Advice(topic, sentence) for topic, sentence in said if sentence]


def question(report: Report) -> str:
    """What the run asked, as a question."""
    panels = report.main_panels
    workloads = list(dict.fromkeys(quoted(panel.setting.workload) for panel in panels))
    loads = list(dict.fromkeys(panel.setting.load for panel in panels))
    if not panels:
        return "Which deployment serves the most?"
    if report.run.info.plan.capacity:
        return f"Which deployment holds the highest rate on {joined(workloads)}, {joined(loads)}?"
    if is_asked_rate(panels[0]):
        return f"How long do answers take on {joined(workloads)}, at {joined(loads)}?"
    return f"Which deployment answers the most requests/s on {joined(workloads)}, with {joined(loads)}?"


def last_lines(report: Report) -> list[str]:
    """The answer for a terminal: what to pick, what it gains and costs, and the command for production."""
    shown = ("Pick", "Confidence", "Gain", "Cost", "In production")
    return [advice.sentence.replace("`", "") for advice in pick(report) if advice.topic in shown]


def _no_pick_at_a_rate() -> str:
    """Why a run at a given rate names no deployment, and which run does."""
    return (
        "No pick: every deployment was asked for the same requests/s, so compare how long answers took, and who "
        "did not keep up. The highest rate that each holds: `--capacity p95=200ms` in place of `--rate`."
    )


def _about(choice: Choice, short: bool) -> list[tuple[str, str]]:
    """What else there is to say of the choice, by topic; of one that is not proven, only what it takes to prove one."""
    if not choice.proven:
        return [("Confidence", _more_rounds(choice.report, "prove one"))]
    more = _more_rounds(choice.report, "tell them apart")
    sure = ("Confidence", more if choice.tied and not choice.report.run.info.plan.until else "")
    cost = ("Cost", prices.sentence(choice, short=short))
    if short:
        return [sure, cost]
    verified = safety.verdict(choice.report, *choice.chosen)
    return [
        sure,
        ("Gain", _gain(choice)),
        cost,
        ("In production", _command(choice)),
        ("Safety", f"It {verified}" if verified else ""),
        ("Without caching", _without_caching(choice)),
    ]


def _more_rounds(report: Report, to: str) -> str:
    """What more rounds may do, and the command that makes them; empty where no command does."""
    command = conditions.command_with_more_rounds(report)
    return f"More rounds may {to}: {quoted(command)}." if command else ""


def _why_nothing(report: Report) -> str:
    """Why no deployment has a figure: the guard that voided most trials, with its remedy."""
    findings = [finding for row in report.rows for trial in row.voided for finding in voided_by(trial)]
    if not findings:
        return "The reasons are under Left out."
    name, _ = Counter(name for name, _ in findings).most_common(1)[0]
    example = next(text for guard, text in findings if guard == name)
    voided = plural(sum(len(row.voided) for row in report.rows), "trial")
    remedy = REMEDIES.get(name, "Read what it found under Left out")
    again = quoted(report.run.resume_command())
    return f"Guards voided {voided}, most often {quoted(name)}: {example}. {remedy}, then make them again: {again}."


def _beside(choice: Choice, main: Choice) -> str:
    """The sentence for another size or database than the main one."""
    if choice.chosen == main.chosen and choice.proven and not choice.is_only:
        sure = how_sure(choice).replace(", the simplest of them", " and is the simplest")
        return f"Pick {deployment_name(*choice.chosen)} as well: it {sure if choice.tied else f'serves {sure}'}."
    return headline(choice)


def headline(choice: Choice) -> str:
    """The sentence that names the deployment to pick, or why there is none yet."""
    name, standings = deployment_name(*choice.chosen), choice.standings
    if not choice.proven:
        proof = "one round proves" if choice.most_rounds == 1 else "so few figures prove"
        return f"No pick yet: {name} has the highest figure {choice.where}, but {proof} no difference."
    if choice.is_only:
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
    return f"Pick {name}: {choice.where}, it ties with {others}{sure}, and {why_simplest(choice)}."


def _gain(choice: Choice) -> str:
    """What the layer gains over none on the same stack."""
    stack, layer = choice.chosen
    question = choice.question
    if layer == NO_LAYER:
        tried = any(key[0] == stack and key != choice.chosen for key in question.deployments)
        return "No layer measured on this stack is proven faster than none." if tried else ""
    ratio = question.gain(choice.chosen)
    if ratio is None:
        return f"Layer {quoted(NO_LAYER)} has no figures on this stack, so the gain of the layer is not known."
    text = f"It serves {number(ratio.ratio)} times the requests/s of the same stack without a layer"
    if math.isfinite(ratio.high):
        text += f" ({IN_95} {interval(ratio)} times)"
    if len(question.panels) == 1:
        return f"{text}."
    each = [
        f"{number(rate_of(row) / rate_of(bare))} times on {setting_title(choice.report, panel)}"
        for panel in question.panels
        if (row := question.row(panel, choice.chosen)) and (bare := question.row(panel, (stack, NO_LAYER)))
    ]
    return f"{text}: {joined(each)}."


def _command(choice: Choice) -> str:
    """The command that renders the deployment for production."""
    stack, layer = choice.chosen
    options = options_of(layer)
    project = choice.report.run.info.plan.project
    options += f" --project {redacted(project)}" if project else ""
    proxy = " It needs a proxy in front that ends TLS." if choice.question.needs_proxy(choice.chosen) else ""
    return f"Render it with {quoted(f'python -m bench render {stack}{options} --values production --to DIR')}.{proxy}"


def _without_caching(choice: Choice) -> str:
    """The stack to pick where nothing may be cached; the simplest of those that tie."""
    bare = choice.question.standings_of(lambda key: key[1] == NO_LAYER)
    if choice.chosen[1] == NO_LAYER or bare is None or len(bare.ratios) < 2 or not bare.proven:
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
