"""The suite: checks in their order, and running them all through one front port.

A check is one small function: it is given a Context and yields a Mismatch for each wrong answer, none when all is
right; also a Figure for what it measured, and NotTried when this kind of target cannot be asked. Adding a check is
writing that function in a module of `bench.verify.checks` under `@check("its-name")`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from bench.errors import BenchError
from bench.serve.deployment import Running
from bench.verify import wire
from bench.verify.browser import Browser, log_in
from bench.verify.outcome import BEHAVIOUR, GROUPS, Figure, Finding, Mismatch, NotAsked, NotTried, Outcome
from bench.verify.site import Account, Site
from bench.verify.wire import Answer, BadAnswer, Target

# Stages in their order: while the database is as the expected answers were made from; with an account that reads and
# writes; after it, when nothing may be compared with the expected pages any more; last what asks the layer, when the
# account is removed again and nothing but the check itself makes pages stale.
READING, ACCOUNT, AFTER, LAYER = "reading", "account", "after", "layer"
STAGES = (READING, ACCOUNT, AFTER, LAYER)

# Seconds of load by many clients at once: enough to show a fault, short enough to verify before each measurement.
LOAD_S = 0.3
AHEAD = 4

# A server that leaves every check waiting is told off after this many seconds instead of after each check's own limit.
# The checks of the layer begin to count anew.
SUITE_LIMIT_S = 60.0
LAYER_LIMIT_S = 180.0
SHOWN = 3
LONGEST = 400
LEFT_OUT = "a thorough check, left out here; `python -m bench verify` makes it"


@dataclass(frozen=True)
class Check:
    """One check.

    run       yields what is wrong
    group     one of GROUPS; all but `behaviour` are made only of deployments with a layer
    stage     one of STAGES
    aside     it spends its time waiting and runs beside the others of the suite
    thorough  it takes seconds, so that a run leaves it out unless asked for
    accounts  how many accounts it logs in with; see Context.member
    """

    name: str
    run: Callable[[Context], Iterable[Finding]]
    group: str = BEHAVIOUR
    stage: str = READING
    aside: bool = False
    thorough: bool = False
    accounts: int = 0

    @property
    def title(self) -> str:
        """What the check proves, in a sentence."""
        return " ".join((self.run.__doc__ or "").split("\n\n")[0].split())


CHECKS: list[Check] = []


def check(
    name: str,
    *,
    group: str = BEHAVIOUR,
    stage: str | None = None,
    aside: bool = False,
    thorough: bool = False,
    accounts: int = 0,
) -> Callable[[Callable], Callable]:
    """Register the function as the next check of its group; see Check. What asks the layer is made last."""
    stage = stage or (READING if group == BEHAVIOUR else LAYER)

    def register(function: Callable) -> Callable:
        if any(known.name == name for known in CHECKS):
            raise ValueError(f"two checks are called {name}")
        if group not in GROUPS or stage not in STAGES or (aside and stage != READING):
            raise ValueError(f"check {name}: group {group!r}, stage {stage!r}, aside {aside}")
        CHECKS.append(Check(name, function, group, stage, aside, thorough, accounts))
        return function

    return register


def all_checks() -> list[Check]:
    """Every check in the order it is run in."""
    import bench.verify.checks  # noqa: F401 - its modules register their checks

    groups = list(GROUPS)
    return sorted(CHECKS, key=lambda item: (STAGES.index(item.stage), groups.index(item.group)))


@dataclass
class Context:
    """What a check works with.

    layers    the layers on the deployment, empty for `none`
    env       environment of the deployment's site, for the site's commands
    pages     first anonymous answers by path, shared by the checks that only look at them
    seen      render ids seen before the database was written to
    posts     ids of the posts that were commented on, to be cleaned up
    load_s    seconds that many clients at once go on asking
    running   the deployment, for checks that stop a service of it; None for a site that somebody else has brought up
    members   the accounts that checks of the layer log in with, while they are being made
    browsers  those of them who have logged in, by their number
    beside    the same deployment once more, with other values, by what was changed; see bench.verify.laid.again
    exits     what is undone when the suite ends
    """

    target: Target
    site: Site
    layers: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    account_future: Future[Account] | None = None
    browser: Browser | None = None
    pages: dict[str, Answer] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    posts: list[str] = field(default_factory=list)
    load_s: float = LOAD_S
    running: Running | None = None
    members: list[Future[Account]] = field(default_factory=list)
    browsers: dict[int, Browser] = field(default_factory=dict)
    beside: dict[str, Context] = field(default_factory=dict)
    exits: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def get(self, path: str | bytes, headers: wire.Headers = (), **more: object) -> Answer:
        """The answer to one anonymous request on a connection of its own."""
        answer = wire.fetch(self.target, path, headers, **more)  # type: ignore[arg-type]
        if answer.render_id:
            self.seen.add(answer.render_id)
        return answer

    def first(self, path: str) -> Answer:
        """The first anonymous answer of `path`, asked for once."""
        if path not in self.pages:
            self.pages[path] = self.get(path)
        return self.pages[path]

    def fetch_ahead(self, paths: Iterable[str]) -> None:
        """Ask for all of `paths` a few at a time, which also wakes every worker; what goes wrong shows at first()."""
        with ThreadPoolExecutor(AHEAD) as pool:
            list(pool.map(self._try_first, paths))

    def _try_first(self, path: str) -> None:
        with contextlib.suppress(BadAnswer, OSError):
            self.first(path)

    def account(self) -> Account:
        """The account of this deployment, once it is made."""
        assert self.account_future is not None
        return self.account_future.result()

    def remove_account(self) -> None:
        """Remove the account and what it wrote; nothing when that is done, or when there was none."""
        future, self.account_future = self.account_future, None
        if future is not None:
            self._remove([future])

    def member(self, number: int) -> Account:
        """One of the accounts that a check of the layer asked for, counted from 0; their comments go to `posts` too."""
        return self.members[number].result()

    def browser_of(self, number: int) -> Browser:
        """That account's visitor, logged in once for all checks: the site takes its time over each password."""
        if number not in self.browsers:
            self.browsers[number] = log_in(self.target, self.site.url("login"), self.member(number))
        return self.browsers[number]

    def remove_members(self) -> None:
        """Remove those accounts and what they wrote; nothing when that is done, or when there were none."""
        members, self.members = self.members, []
        self._remove(members)

    def _remove(self, futures: list[Future[Account]]) -> None:
        for future in futures:
            with contextlib.suppress(NotAsked):
                self.site.remove_account(future.result(), self.posts, self.env)

    def signed_in(self) -> Browser:
        """The visitor that the `login` check logged in; raises BadAnswer when that failed."""
        if self.browser is None:
            if self.account_future is not None:
                self.account()  # raises NotAsked where none can be made
            raise BadAnswer("not tried: nobody is logged in, see login")
        return self.browser


# Told of each check before it is made: how many are done, how many there are, and which it is.
Progress = Callable[[int, int, Check], None]


def verify_url(
    url: str | Target,
    site: Site,
    *,
    stack: str,
    layer: str,
    env: Mapping[str, str] | None = None,
    declared: Mapping[str, str] | None = None,
    only: Iterable[str] = (),
    groups: Iterable[str] = (),
    load_s: float = LOAD_S,
    thorough: bool = True,
    running: Running | None = None,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Run the suite against the site served at `url`: one Outcome a check, in their order.

    env       environment of the deployment's site, so that its layers are told when the account is removed
    declared  checks that the stack or layer does not support, with the reason
    only      names of checks to run, all when empty
    groups    names of groups to run, all when empty
    load_s    seconds that many clients at once go on asking
    thorough  also the checks that take seconds; without it they are NotTried, unless named in `only`
    running   the deployment, where it is the instrument's own
    progress  told of each check before it is made

    Whatever happens, the accounts made for it are removed again. Raises BenchError when the site's commands fail or a
    name is not a check's.
    """
    target = url if isinstance(url, Target) else Target.parse(url)
    declared = declared or {}
    layers = _layers(layer)
    checks = chosen(only, groups, declared, layer)
    left_out = set() if thorough or only else {item.name for item in checks if item.thorough}
    todo = [item for item in checks if item.name not in declared and item.name not in left_out]
    context = Context(target, site, layers, env or {}, load_s=load_s, running=running)
    with context.exits, ThreadPoolExecutor(8) as pool:
        if any(item.stage == ACCOUNT for item in todo):
            context.account_future = pool.submit(site.create_account, env)
        context.members = [pool.submit(site.create_account, env) for _ in range(_members(todo))]
        try:
            found = dict(_run(context, _told(todo, progress), pool))
        finally:
            context.remove_account()
            context.remove_members()
    found |= {name: [NotTried(LEFT_OUT)] for name in left_out}
    return [_outcome(stack, layer, item, found.get(item.name, []), declared) for item in checks]


def _layers(layer: str) -> tuple[str, ...]:
    return tuple(name for name in layer.split("+") if name != "none")


def chosen(only: Iterable[str], groups: Iterable[str], declared: Mapping[str, str], layer: str) -> list[Check]:
    """The checks that are made of a deployment with this layer, in their order; see verify_url."""
    only, groups = list(only), list(groups)
    must_know([*only, *declared])
    return [
        item
        for item in all_checks()
        if (not only or item.name in only)
        and (not groups or item.group in groups)
        and (_layers(layer) or item.group == BEHAVIOUR)
    ]


def _members(todo: list[Check]) -> int:
    return max((item.accounts for item in todo), default=0)


def _told(todo: list[Check], progress: Progress | None) -> list[Check]:
    """The checks, each of which says that it begins."""
    if progress is None:
        return todo
    return [_tells(item, number, len(todo), progress) for number, item in enumerate(todo)]


def _tells(item: Check, number: int, total: int, progress: Progress) -> Check:
    def run(context: Context) -> Iterable[Finding]:
        progress(number, total, item)
        return item.run(context)

    return replace(item, run=run)


def must_know(names: Iterable[str]) -> None:
    """Raise BenchError for a name that is not a check's."""
    known = [item.name for item in all_checks()]
    for name in names:
        if name not in known:
            raise BenchError(f"no check is called {name!r}; the checks are: {', '.join(known)}")


def _run(context: Context, todo: list[Check], pool: ThreadPoolExecutor) -> Iterator[tuple[str, list[Finding]]]:
    """Each check's name with its findings, stage by stage; the account is removed beside the stage after its own."""
    deadline = time.monotonic() + SUITE_LIMIT_S
    aside = [(item.name, pool.submit(findings, item, context)) for item in todo if item.aside]
    yield from _stage(READING, todo, context, deadline)
    # Those beside compare pages too, so they end before the first write.
    for name, future in aside:
        yield name, future.result()
    yield from _stage(ACCOUNT, todo, context, deadline)
    removal = pool.submit(context.remove_account)
    yield from _stage(AFTER, todo, context, deadline)
    removal.result()
    yield from _stage(LAYER, todo, context, time.monotonic() + LAYER_LIMIT_S)


def _stage(stage: str, todo: list[Check], context: Context, deadline: float) -> Iterator[tuple[str, list[Finding]]]:
    for item in todo:
        if item.stage != stage or item.aside:
            continue
        if time.monotonic() > deadline:
            yield item.name, [Mismatch("an answer", f"not tried: the suite has taken {_limit(stage):g} s already")]
        else:
            yield item.name, findings(item, context)


def _limit(stage: str) -> float:
    return LAYER_LIMIT_S if stage == LAYER else SUITE_LIMIT_S


def findings(item: Check, context: Context) -> list[Finding]:
    """What the check found; a broken connection or an unreadable answer is a finding too."""
    found: list[Finding] = []
    try:
        found.extend(item.run(context))
    except NotAsked as reason:
        found.append(NotTried(str(reason)))
    except BadAnswer as error:
        found.append(Mismatch("a complete answer", str(error)))
    except OSError as error:
        found.append(Mismatch("a complete answer", f"{type(error).__name__}: {error}"))
    except (ValueError, LookupError) as error:
        found.append(Mismatch("an answer that can be read", f"{type(error).__name__}: {error}"))
    return found


def _outcome(stack: str, layer: str, item: Check, found: list[Finding], declared: Mapping[str, str]) -> Outcome:
    if item.name in declared:
        return Outcome(stack, layer, item.name, True, declared=declared[item.name], group=item.group)
    wrong = [finding for finding in found if isinstance(finding, Mismatch)]
    reasons = dict.fromkeys(finding.reason for finding in found if isinstance(finding, NotTried))
    return Outcome(
        stack,
        layer,
        item.name,
        not wrong,
        expected=_joined([finding.expected for finding in wrong]) if wrong else None,
        got=_joined([finding.got for finding in wrong]) if wrong else None,
        group=item.group,
        figures={finding.name: finding.value for finding in found if isinstance(finding, Figure)},
        not_tried="; ".join(reasons) or None,
    )


def _joined(texts: list[str]) -> str:
    shown = [text if len(text) <= LONGEST else text[: LONGEST - 3] + "..." for text in texts[:SHOWN]]
    more = len(texts) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")
