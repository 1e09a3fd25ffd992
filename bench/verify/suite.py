"""The suite: choose the checks and run them through one front port."""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from bench import PROGRAM
from bench.errors import BenchError, hint
from bench.serve.catalog.manifest import Layer
from bench.serve.machine.http import BadResponse, Sent
from bench.verify.changing import changed, knowing
from bench.verify.check import ACCOUNT, AFTER, BEHAVIOUR, FIRST, LAYER, READING, STAGES, Check
from bench.verify.checks import CHECKS
from bench.verify.context import LOAD_S, Context, NeedsExclusive
from bench.verify.in_process import ExpectedPage
from bench.verify.mismatch import UP_PORT, Figure, Finding, Mismatch, NotTried
from bench.verify.outcome import GROUPS, Outcome
from bench.verify.site import DatabaseChanged
from bench.words import command_line

# A server that lets every check wait ends the suite when failed checks have taken so many seconds, not after the limit
# of each check: a slow site with right responses is tested to the end. The checks of the layer have a separate limit.
SUITE_LIMIT_S = 60.0
LAYER_LIMIT_S = 180.0
# Number of mismatches shown for a check, and the length of each.
MAX_MISMATCHES = 3
MAX_CHARACTERS = 400
# Attempts of the read-only checks, while more pages turn out to differ between renderings.
ROUNDS = 4
LEFT_OUT = f"a thorough check, left out here; `{PROGRAM} verify` makes it"
# Number of checks at the same time: some of them sleep, and more would wait for each other on two cores.
THREADS = 6

# Groups about pages that declare their own cacheability; no project needs such a page.
OF_LAYERS = ("caching", "advisories")

# Called before each check: the number of checks begun, the total, and the check.
Progress = Callable[[int, int, Check], None]


def all_checks() -> list[Check]:
    """Every check, in order of running."""
    groups = list(GROUPS)
    return sorted(CHECKS, key=lambda item: (STAGES.index(item.stage), groups.index(item.group)))


def require_checks(names: Iterable[str]) -> None:
    """Raise BenchError for an unknown check."""
    known = [item.name for item in all_checks()]
    for name in names:
        if name not in known:
            listed = hint(name, known, lister=f"{PROGRAM} verify --list-checks")
            raise BenchError(f"no check is called {name!r}; {listed}")


def require_excusable(declared: Iterable[str]) -> None:
    """Raise BenchError for a declared check that is unknown or cannot be excused."""
    require_checks(declared)
    leaks = [item.name for item in all_checks() if item.name in declared and not item.excusable]
    if leaks:
        raise BenchError(
            f"{', '.join(leaks)}: a failure hands one visitor's page to another, or is a known vulnerability, never a "
            "known limitation; take the declaration out of stack.toml or layer.toml"
        )


@dataclass(frozen=True)
class Selection:
    """Selected checks; raises BenchError for an unknown name.

    checks    names of checks, empty: all
    groups    names of groups, empty: all
    load_s    seconds of load by many clients at once
    thorough  run slow checks too; otherwise slow checks are NotTried, unless `checks` names them
    unsafe    run checks that a declared unsafe layer fails; a run measures such a layer anyway, and leaves these checks
              NotTried
    """

    checks: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    load_s: float = LOAD_S
    thorough: bool = True
    unsafe: bool = True

    def __post_init__(self) -> None:
        require_checks(self.checks)

    def of(self, layers: tuple[Layer, ...]) -> list[Check]:
        """The checks for a deployment with these layers, in order."""
        checks = all_checks()
        if self.checks:
            checks = [item for item in checks if item.name in self.checks]
        if self.groups:
            checks = [item for item in checks if item.group in self.groups]
        if all(layer.is_none for layer in layers):
            checks = [item for item in checks if item.group == BEHAVIOUR]
        return checks

    def reason_to_skip(self, item: Check, layers: tuple[Layer, ...]) -> str:
        """The reason to leave out a check: a layer declares itself unsafe, or the check takes too long; or empty."""
        if item.group in OF_LAYERS and not self.unsafe and not item.excusable:
            unsafe = [f"{layer.name}: {layer.unsafe}" for layer in layers if layer.unsafe]
            if unsafe:
                return "; ".join(unsafe)
        if item.thorough and not self.thorough and not self.checks:
            return LEFT_OUT
        return ""


def run_suite(context: Context, selection: Selection, progress: Progress | None = None) -> list[Outcome]:
    """Run the checks against the site: one Outcome a check, in their order.

    The accounts are always removed again. Raises BenchError if the site's commands fail, and DatabaseChanged if another
    program changed rows of compared pages.
    """
    require_excusable(context.declared)
    context.load_s = selection.load_s
    checks = selection.of(context.layers)
    skipped: dict[str, list[Finding]] = {}
    for item in checks:
        if why := selection.reason_to_skip(item, context.layers):
            skipped[item.name] = [NotTried(why)]
    # A declared check runs only if it is named, to see it fail.
    declared = context.declared.keys() - set(selection.checks)
    due = [item for item in checks if item.name not in skipped.keys() | declared]
    proving = set[str]().union(*(item.proved_by for item in due))
    chosen = [item for item in all_checks() if item.name in proving or (item in due and not item.proved_by)]
    with context.exits:
        try:
            by_check = _Suite(context, chosen, progress).run()
        finally:
            context.accounts.remove()
    for item in due:
        if item.proved_by:
            by_check[item.name] = list(itertools.chain.from_iterable(by_check[name] for name in item.proved_by))
    by_check |= skipped
    # A check that proves another one ran all the same.
    for name in declared:
        by_check.pop(name, None)
    return [outcome(context, item, by_check.get(item.name)) for item in checks]


@dataclass
class _Suite:
    """The checks of one deployment while they run."""

    context: Context
    checks: list[Check]
    progress: Progress | None
    failing_s: float = 0.0
    begun: set[str] = field(default_factory=set)
    # One at a time shows that it begins.
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> dict[str, list[Finding]]:
        """Each check's findings, stage by stage."""
        by_check = self._reading()
        by_check |= self._stage(ACCOUNT, SUITE_LIMIT_S) | self._stage(AFTER, SUITE_LIMIT_S)
        self.failing_s = 0.0
        return by_check | self._stage(LAYER, LAYER_LIMIT_S)

    def _reading(self) -> dict[str, list[Finding]]:
        """Findings of the checks before the suite's first write; checks run again while pages turn out to change by
        themselves.

        Raises DatabaseChanged if the rows differ.
        """
        site = self.context.site
        if site.has_database and any(page.varies for page in site.pages.values()):
            # Other pages may change by themselves, too, and a layer that stores them would hide it.
            self._learn(changed(site).by_itself)
        for _ in range(ROUNDS):
            by_check = self._stage(FIRST, SUITE_LIMIT_S) | self._stage(READING, SUITE_LIMIT_S)
            if not concerns_pages(by_check, self.context) or not self._learn_changes():
                break
        return by_check

    def _learn_changes(self) -> bool:
        """Find pages that change by themselves; False if no page is new. Raises DatabaseChanged if the rows differ."""
        now = changed(self.context.site)
        if now.by_rows:
            raise DatabaseChanged(
                f"{', '.join(now.by_rows[:MAX_MISMATCHES])}: another page now than before {self.context.stack} "
                f"with layer {self.context.layer} was verified; stop the program that changes the database, or "
                "name another one with --database"
            )
        self._learn(now.by_itself)
        return bool(now.by_itself)

    def _learn(self, by_itself: Mapping[str, ExpectedPage]) -> None:
        if by_itself:
            self.context.site = knowing(self.context.site, by_itself)
            self.context.pages.clear()
            self.failing_s = 0.0
            self.begun.clear()

    def _stage(self, stage: str, limit_s: float) -> dict[str, list[Finding]]:
        """Run some checks at the same time, then the others, which may write, one after another.

        A check that turns out to need the whole site runs once more, among the others.
        """
        due = [item for item in self.checks if item.stage == stage]
        by_check: dict[str, list[Finding] | None] = {}
        self.context.is_exclusive = False
        pool = ThreadPoolExecutor(THREADS)
        try:
            # The longest are among the last: they begin first, so that none is left at the end.
            beside = [item for item in reversed(due) if item.side_by_side]
            futures = {item.name: pool.submit(self._findings, item, limit_s) for item in beside}
            for name, future in futures.items():
                by_check[name] = future.result()
        finally:
            # After a Ctrl-C, or when a command of the site has failed, no other check is begun.
            pool.shutdown(cancel_futures=True)
        self.context.is_exclusive = True
        for item in due:
            if by_check.get(item.name) is None:
                by_check[item.name] = self._findings(item, limit_s)
        return {name: result or [] for name, result in by_check.items()}

    def _findings(self, item: Check, limit_s: float) -> list[Finding] | None:
        """The findings of the check; None if it cannot run beside others."""
        if self.failing_s > limit_s:
            return [NotTried(f"the checks that failed have taken {limit_s:g} s already")]
        with self.lock:
            if self.progress:
                self.progress(len(self.begun - {item.name}), len(self.checks), item)
            self.begun.add(item.name)
        begun = time.monotonic()
        try:
            result = findings(item, self.context)
        except NeedsExclusive:
            return None
        if any(isinstance(finding, Mismatch) for finding in result):
            self.failing_s += time.monotonic() - begun
        return result


def concerns_pages(results: Mapping[str, list[Finding]], context: Context) -> bool:
    """True if a wrong response may belong to a page rendered in process."""
    for finding in itertools.chain.from_iterable(results.values()):
        if isinstance(finding, Mismatch) and context.site.has_database:
            path = None
            if finding.sent:
                path = finding.sent.path
            if not isinstance(path, str) or path.partition("?")[0] in context.site.pages:
                return True
    return False


def findings(item: Check, context: Context) -> list[Finding]:
    """Findings of the check; a broken connection or an unreadable response is a finding too."""
    result: list[Finding] = []
    try:
        result.extend(item.run(context))
    except NotTried as reason:
        result.append(reason)
    except (BadResponse, OSError) as error:
        sent: Sent | None = getattr(error, "sent", None)
        expected = "a complete response"
        if sent:
            expected = f"{sent}: a complete response"
        got = str(error)
        if not isinstance(error, BadResponse):
            got = f"{type(error).__name__}: {error}"
        result.append(Mismatch(expected, got, sent))
    except (ValueError, LookupError) as error:
        result.append(Mismatch("a readable response", f"{type(error).__name__}: {error}"))
    return result


def outcome(context: Context, item: Check, result: list[Finding] | None) -> Outcome:
    """The record of a check's findings; None if the check was skipped because of a declaration."""
    declared, reported = context.declared.get(item.name), result or []
    if declared and result is not None and not any(isinstance(finding, Mismatch | NotTried) for finding in reported):
        reported = [
            *reported,
            Mismatch(f"a failure, for it is declared: {declared}", "it passes: remove the declaration"),
        ]
        declared = None
    wrong: list[Mismatch] = []
    figures: dict[str, float | None] = {}
    reasons: dict[str, None] = {}
    for finding in reported:
        if isinstance(finding, Mismatch):
            wrong.append(finding)
        elif isinstance(finding, Figure):
            figures[finding.name] = finding.value
        else:
            reasons[str(finding)] = None
    expected = got = None
    if wrong:
        expected = _joined([finding.expected for finding in wrong])
        got = _joined([finding.got for finding in wrong])
    request, serve = _again(context, wrong)
    return Outcome(
        context.stack,
        context.layer,
        item.name,
        not wrong or bool(declared),
        expected=expected,
        got=got,
        request=request,
        serve=serve,
        known_limitation=declared,
        group=item.group,
        figures=figures,
        skipped="; ".join(reasons) or None,
    )


def _again(context: Context, wrong: list[Mismatch]) -> tuple[str | None, str | None]:
    """The first wrong response's request as a curl command, and the command to serve that request again.

    A target is already running. A deployment of ours is gone when its results are read, so `up --port 8000` serves the
    deployment again, with the values of the clone used.
    """
    sent = next((finding.sent for finding in wrong if finding.sent), None)
    if sent is None:
        return None, None
    request = sent.command
    if request is None or context.running is None:
        return request, None
    served = next((clone for clone in context.clones if clone.target.origin == sent.origin), context)
    layer = []
    if context.layers:
        layer = ["--layer", context.layer]
    serve = command_line("up", context.stack, *layer, *served.options, "--port", UP_PORT)
    return re.sub(rf":{urlsplit(sent.origin).port}(?!\d)", f":{UP_PORT}", request), serve


def _joined(texts: list[str]) -> str:
    shown = []
    for text in texts[:MAX_MISMATCHES]:
        if len(text) > MAX_CHARACTERS:
            text = text[: MAX_CHARACTERS - 3] + "..."
        shown.append(text)
    if len(texts) > MAX_MISMATCHES:
        shown.append(f"and {len(texts) - MAX_MISMATCHES} more")
    return "; ".join(shown)
