"""The sentences of a report on faults. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from bench.figures.words import joined, plural
from bench.report import conditions, redact
from bench.report.faults.model import Deployment, Faults, Made, short
from bench.report.numbers import one_line
from bench.report.redact import redacted

# Faults of a deploy and of deaths, by which deployments are praised.
REPLACED = ("configuration", "application")
SLOW = ("slow-headers", "slow-bodies", "slow-readers")
FEW_ROUNDS = 3
WITHOUT_SYSTEMD = (
    "Here a deploy is a reload, or a restart of a server that cannot reload. On a rendered host systemd holds the "
    "socket of servers that can take it over: a deploy restarts those, and requests wait."
)
# How fast visitors ask.
RATE = "a third of the capacity and 200 at most"


def title(found: Faults) -> str:
    """What the report is about."""
    return (
        f"What visitors notice on {plural(len(found.deployments), 'deployment')} when something is replaced or breaks"
    )


def summary(found: Faults) -> str:
    """How many outcomes are of which kind."""
    words = ("as expected", "pass"), ("declared", "declared"), ("not as expected", "FAIL"), ("voided", "VOIDED")
    parts = [f"{found.count(word):,} {name}" for name, word in words if found.count(word)]
    skipped = found.count("skipped")
    return f"{plural(len(found.run.latest), 'fault')}: " + ", ".join(
        [*parts, *([f"{skipped:,} not possible there"] if skipped else [])]
    )


def findings(found: Faults) -> Iterator[tuple[str, str]]:
    """Topic and sentence of what a chooser asks first."""
    killed = found.groups.get("killed", [])
    yield from _praised(
        found,
        "Deploy and reload",
        "took a deploy and a reload without losing a request",
        REPLACED,
        lambda made: _lost(made) == 0,
    )
    yield from _praised(found, "Deaths", "came back from every kill by themselves, as expected", killed, _is_back)
    yield from _praised(found, "Slow clients", "served others beside 200 slow clients of every kind", SLOW, _stands)
    yield from _praised(found, "Garbage", "took no harm from malformed requests", ("malformed",), _is_clean)


def _praised(
    found: Faults, topic: str, words: str, faults: Collection[str], good: Callable[[Made], bool]
) -> Iterator[tuple[str, str]]:
    """Which deployments are good in all of these faults, of those on which they were made."""
    made = {
        deployment: [item for name in faults if (item := its.get(name)) and item.usable]
        for deployment, its in found.made.items()
    }
    made = {deployment: items for deployment, items in made.items() if items}
    if not made:
        return
    praised = [_name(deployment) for deployment, items in made.items() if all(map(good, items))]
    others = [_name(deployment) for deployment in made if _name(deployment) not in praised]
    # The shorter list says as much.
    named = f"all but {joined(others)}" if 0 < len(others) < len(praised) else joined(praised)
    yield topic, f"{len(praised)} of {plural(len(made), 'deployment')} {words}{f': {named}' if praised else ''}."


def _name(deployment: Deployment) -> str:
    return f"`{deployment.stack}`" + (f" ({deployment.details})" if deployment.details else "")


def _lost(made: Made) -> float:
    return max(made.values("failed"))


def _is_back(made: Made) -> bool:
    return made.operator == "nothing" and made.first.status == "ok" and not made.first.declared


def _stands(made: Made) -> bool:
    return not made.figures("stops_at")


def _is_clean(made: Made) -> bool:
    return made.first.status == "ok" and not made.first.declared


def caveats(found: Faults) -> list[str]:
    """What a reader must know before trusting a figure."""
    run, plan = found.run, found.run.info.plan
    notes = []
    if run.info.finished_at is None:
        notes.append("These faults were not finished. The report shows those made so far.")
    if plan.rounds < FEW_ROUNDS:
        notes.append(f"{plural(plan.rounds, 'round')} only: a count of lost requests may be another next time.")
    if not plan.guards:
        notes.append("Guards were off: a busy machine may have lost requests that the fault did not.")
    if any(set(REPLACED) & made.keys() for made in found.made.values()):
        notes.append(WITHOUT_SYSTEMD)
    cores = run.info.environment.cores
    if cores <= conditions.FEW_CORES:
        shared = f"Visitors, servers and services share {plural(cores, 'core')}"
        notes.append(f"{shared}: compare times within this report, not with other machines.")
    return notes


def machine(found: Faults) -> list[tuple[str, str]]:
    """Facts about the machine and what was asked: name and value."""
    environment, plan = found.run.info.environment, found.run.info.plan
    facts = conditions.machine_of(environment)
    rates = [outcome.rate_per_second for outcome in found.run.latest.values() if outcome.rate_per_second]
    if rates:
        low, high = short(min(rates)), short(max(rates))
        facts.append(("Visitors", f"{low if low == high else f'{low} to {high}'} requests/s, open loop, {RATE}"))
    facts += [("Rounds", f"{plan.rounds}"), ("Database", plan.database), ("Size", plan.size)]
    if plan.project:
        facts.append(("Project", redacted(plan.project)))
    for name, changes in (("Changed values", plan.changes), ("Project environment", plan.env)):
        if changes:
            facts.append((name, ", ".join(one_line(redacted(text)) for text in changes)))
    return [*facts, *conditions.programs_of(environment)]


def command(found: Faults) -> str:
    """The command line that made the faults."""
    return redact.command(found.run.info.command)


def figures(made: Made) -> str:
    """The figures of a fault alone, in words."""
    names = dict.fromkeys(name for item in made.usable for name in item.figures or {})
    parts = []
    for name in names:
        values = made.figures(name)
        parts.append(f"{name.replace('_', ' ')}: {', '.join(map(short, values)) if values else 'none'}")
    return "; ".join(parts)
