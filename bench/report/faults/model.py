"""What visitors noticed, arranged for those who choose a deployment: one row each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.figures.words import joined, plural
from bench.report.numbers import DASH
from bench.results.faults import GROUPS, FaultOutcome, FaultsRun
from bench.results.records import NO_LAYER, UNLIMITED

# How a line is shown: as expected, declared or unknown; otherwise than expected; not made or not to be trusted.
PLAIN, BAD, NONE = "", "bad", "none"
NOT_ASKED = "not asked for"
# A unit that stays on the line of its figure.
SECONDS = "\N{NO-BREAK SPACE}s"
# Deployments in the table that is open; a row has up to 60 words.
MAX_SHOWN = 12
# How many slow clients a fault tries at most.
MAX_SLOW = 200


@dataclass(frozen=True)
class Deployment:
    """A stack with a layer, at a size and on a database."""

    stack: str
    layer: str
    size: str
    database: str

    @property
    def details(self) -> str:
        """The layer, size and database, without those that are the default."""
        parts = [f"layer {self.layer}"] if self.layer != NO_LAYER else []
        parts += [self.size] if self.size != UNLIMITED else []
        parts += [self.database] if self.database != "sqlite" else []
        return ", ".join(parts)

    @property
    def title(self) -> str:
        return f"{self.stack}, {self.details}" if self.details else self.stack


@dataclass(frozen=True)
class Line:
    """One line of a cell.

    label  what it is about, or empty
    kind   PLAIN, BAD or NONE
    """

    text: str
    label: str = ""
    kind: str = PLAIN


@dataclass(frozen=True)
class Made:
    """One fault on one deployment: its outcomes, one for each round, the last of each."""

    outcomes: tuple[FaultOutcome, ...]

    @property
    def first(self) -> FaultOutcome:
        """The outcome that says most: one that failed before those that are as expected."""
        order = ("failed", "ok", "voided", "skipped")
        return min(self.outcomes, key=lambda outcome: order.index(outcome.status))

    @property
    def usable(self) -> list[FaultOutcome]:
        """Those with figures that can be trusted."""
        return [item for item in self.outcomes if item.status in ("ok", "failed") and item.failed is not None]

    @property
    def word(self) -> str:
        return self.first.word

    @property
    def kind(self) -> str:
        """How it is shown."""
        return {"failed": BAD, "voided": NONE, "skipped": NONE}.get(self.first.status, PLAIN)

    def values(self, field: str) -> list[float]:
        """A field of the outcomes, without those that are not measured."""
        return [value for item in self.usable if (value := getattr(item, field)) is not None]

    def figures(self, name: str) -> list[float]:
        """A figure of this fault alone."""
        found = [(item.figures or {}).get(name) for item in self.usable]
        return [value for value in found if value is not None]

    @property
    def requests(self) -> list[float]:
        """Requests since the fault."""
        return [float((item.requests_new or 0) + (item.requests_kept or 0)) for item in self.usable]

    @property
    def operator(self) -> str:
        return (self.first.operator or DASH).partition(",")[0]


@dataclass(frozen=True)
class Faults:
    """A folder of faults, arranged.

    made  deployment -> name of a fault -> what was made of it
    """

    run: FaultsRun
    made: dict[Deployment, dict[str, Made]]

    @property
    def deployments(self) -> list[Deployment]:
        return list(self.made)

    @property
    def groups(self) -> dict[str, list[str]]:
        """Group -> the names of its faults that were asked for."""
        found: dict[str, dict[str, None]] = {group: {} for group in GROUPS}
        for outcome in self.run.latest.values():
            found[outcome.group][outcome.fault] = None
        return {group: list(names) for group, names in found.items() if names}

    def rows(self, fault: str) -> list[tuple[Deployment, Made]]:
        """The deployments on which a fault was made, or tried."""
        of_fault = ((deployment, made.get(fault)) for deployment, made in self.made.items())
        return [(deployment, made) for deployment, made in of_fault if made and made.first.status != "skipped"]

    def reasons(self, word: str) -> list[tuple[str, str, str]]:
        """Each reason of the outcomes with this word once: the reason, the faults and the deployments."""
        found: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
        for outcome in self.run.latest.values():
            if outcome.word == word:
                faults, names = found.setdefault(outcome.declared or outcome.reason or "", ({}, {}))
                faults[outcome.fault] = names[deployment_of(outcome).title] = None
        return [(reason, ", ".join(faults), "; ".join(names)) for reason, (faults, names) in found.items()]

    def count(self, word: str) -> int:
        """How many outcomes have this word."""
        return sum(outcome.word == word for outcome in self.run.latest.values())


def arrange(run: FaultsRun) -> Faults:
    """The last outcome of each fault and round, by deployment."""
    found: dict[Deployment, dict[str, list[FaultOutcome]]] = {}
    for outcome in run.latest.values():
        found.setdefault(deployment_of(outcome), {}).setdefault(outcome.fault, []).append(outcome)
    made = {
        deployment: {fault: Made(tuple(outcomes)) for fault, outcomes in faults.items()}
        for deployment, faults in found.items()
    }
    return Faults(run, made)


def deployment_of(outcome: FaultOutcome) -> Deployment:
    """Where a fault was made."""
    return Deployment(outcome.stack, outcome.layer, outcome.size, outcome.database)


# ------------------------------------------------------------------------------------- the table to choose by


def with_range(values: Sequence[float], unit: str = "") -> str:
    """The median, with the range of several rounds that differ."""
    if not values:
        return "not measured"
    middle = short(median(values))
    low, high = short(min(values)), short(max(values))
    return f"{middle}{unit}" + (f" ({low} to {high})" if low != high else "")


def short(value: float) -> str:
    """A count, or seconds to a hundredth."""
    digits = f"{value:,.{2 if value < 10 else 1}f}"
    return digits.rstrip("0").rstrip(".")


def lost(made: Made) -> str:
    """How many requests failed, and how many answers were wrong if any was."""
    wrong = made.values("wrong")
    return f"{with_range(made.values('failed'))} lost" + (f", {with_range(wrong)} wrong" if any(wrong) else "")


def back(made: Made) -> str:
    """How long until all was right again, and by whom."""
    if any(item.recovery_s is None for item in made.usable):
        return "not back while visitors asked"
    if not any(made.values("failed")):
        return ""
    by = "by itself" if made.operator == "nothing" else made.operator
    return f"{with_range(made.values('recovery_s'))}{SECONDS}, {by}"


def _died(made: Made) -> str:
    return ", ".join(filter(None, (lost(made), back(made))))


def _held(made: Made) -> str:
    return f"{lost(made)}, gap {with_range(made.values('longest_gap_s'))}{SECONDS}"


def _deployed(made: Made) -> str:
    mixed = made.values("mixed_s")
    return f"{lost(made)}, " + (f"mixes {with_range(mixed)}{SECONDS}" if mixed else "the new version never came")


def _stops(made: Made) -> str:
    stops = made.figures("stops_at")
    return f"stops at {short(min(stops))}" if stops else f"none up to {MAX_SLOW}"


def _garbage(made: Made) -> str:
    errors, ended = with_range(made.figures("server_errors")), with_range(made.figures("workers_ended"))
    return f"{errors} 5xx, {ended} crashes, {with_range(made.figures('log_bytes_per_request'))} B of log each"


def _memory(made: Made) -> str:
    kills = made.figures("oom_kills")
    return f"{plural(int(max(kills, default=0)), 'process', 'processes')} killed, {lost(made)}"


def _stale(made: Made) -> str:
    texts = [f"stale pages for {with_range(made.values('stale_s'))}{SECONDS}"] if made.values("stale_s") else []
    missing = made.values("missing_static")
    texts += [f"{short(max(missing))} files missing"] if any(missing) else []
    return ", ".join(texts) or "nothing"


Text = Callable[[Made], str]
# Heading -> the lines of its cells: name of a fault, label, and how its figures are said.
CHOICE: dict[str, tuple[tuple[str, str, Text], ...]] = {
    "a deploy": (("application", "deploy", _deployed), ("configuration", "reload", lost)),
    "a process dies": (("worker", "worker", _died), ("application-server", "server", _died)),
    "front, service, database die": (
        ("front-server", "front", _died),
        ("caching-service", "service", _died),
        ("database", "database", _died),
    ),
    "slow clients that stop it": (
        ("slow-headers", "headers", _stops),
        ("slow-bodies", "bodies", _stops),
        ("slow-readers", "readers", _stops),
    ),
    "garbage": (("malformed", "", _garbage),),
    "memory": (("memory", "", _memory),),
    "something hangs": (
        ("application-server-hangs", "server", _held),
        ("front-server-hangs", "front", _held),
        ("caching-service-hangs", "service", _held),
        ("database-hangs", "database", _held),
        ("database-connections", "no connection", _held),
        ("write-lock", "write lock", _held),
    ),
    "a disk is full": (("full-store", "store", lost), ("full-logs", "logs", lost)),
    "stale after a deploy": (("application", "", _stale), ("cache-after-deploy", "cache", _stale)),
}


# Faults by slow clients, and what their clients do slowly.
SLOW = {"slow-headers": "send headers", "slow-bodies": "send bodies", "slow-readers": "read answers"}
DEPLOY = "application"


def stopped_by(made: Mapping[str, Made]) -> str:
    """How many slow clients stop a deployment, as a sentence; empty where that was not tried."""
    tried = {words: made[name] for name, words in SLOW.items() if name in made and made[name].usable}
    stops = {words: min(found) for words, item in tried.items() if (found := item.figures("stops_at"))}
    if stops:
        parts = [f"{short(count)} that {words} slowly" for words, count in stops.items()]
        return f"Slow clients stop it: {joined(parts)}."
    return f"{MAX_SLOW} clients that {joined(list(tried), 'or')} slowly do not stop it." if tried else ""


def lost_by_deploy(made: Mapping[str, Made]) -> str:
    """How many requests a deploy loses, as a sentence; empty where that was not tried."""
    deploy = made.get(DEPLOY)
    if deploy is None or not deploy.usable:
        return ""
    requests = with_range(deploy.requests)
    return f"A deploy loses {with_range(deploy.values('failed'))} of {requests} requests."


def headings(found: Faults) -> list[str]:
    """The columns of the table about which something was asked."""
    asked = {fault for made in found.made.values() for fault in made}
    return [heading for heading, parts in CHOICE.items() if asked & {fault for fault, _, _ in parts}]


def choice(found: Faults, deployment: Deployment) -> Iterable[tuple[str, list[Line]]]:
    """The row of a deployment: heading and lines of each cell."""
    made = found.made[deployment]
    for heading in headings(found):
        parts = CHOICE[heading]
        lines = [_line(made[fault], label, text) for fault, label, text in parts if fault in made]
        # What a deployment cannot have is said once, in the list of what was skipped.
        shown = [line for line in lines if line.text != DASH] or lines[:1]
        yield heading, shown or [Line(NOT_ASKED, kind=NONE)]


def _line(made: Made, label: str, text: Text) -> Line:
    if made.first.status == "skipped":
        return Line(DASH, label, NONE)
    if not made.usable:
        return Line(made.word if made.first.status == "voided" else f"{made.word}, no figures", label, made.kind)
    # A deploy may be otherwise than expected for more reasons than one; this cell is about one of them.
    is_fresh = text is _stale and not any(made.values("stale") + made.values("missing_static"))
    return Line(text(made), label, PLAIN if is_fresh else made.kind)
