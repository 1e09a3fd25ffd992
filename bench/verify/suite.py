"""The suite: checks in their order, and running them all through one front port.

A check is one small function: it is given a Context and yields a Mismatch for each wrong answer, none when all is
right. Adding a check is writing that function in a module of `bench.verify.checks` under `@check("its-name")`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from bench.errors import BenchError
from bench.verify import wire
from bench.verify.browser import Browser
from bench.verify.site import Account, Site
from bench.verify.wire import Answer, BadAnswer, Target

# Stages in their order: while the database is as the expected answers were made from; with an account that reads and
# writes; after it, when nothing may be compared with the expected pages any more.
READING, ACCOUNT, AFTER = "reading", "account", "after"
STAGES = (READING, ACCOUNT, AFTER)

# Seconds of load by many clients at once: enough to show a fault, short enough to verify before each measurement.
LOAD_S = 0.3
AHEAD = 4

# A server that leaves every check waiting is told off after this many seconds instead of after each check's own limit.
SUITE_LIMIT_S = 60.0
SHOWN = 3
LONGEST = 400


@dataclass(frozen=True)
class Mismatch:
    """One wrong answer, in words."""

    expected: str
    got: str


@dataclass(frozen=True)
class Outcome:
    """What one check found on one deployment; a line of verify.jsonl.

    declared  the reason why the stack or layer does not support it, or None
    """

    stack: str
    layer: str
    check: str
    ok: bool
    expected: str | None = None
    got: str | None = None
    declared: str | None = None


@dataclass(frozen=True)
class Check:
    """`run` yields what is wrong; `aside` checks spend their time waiting and run beside the others of the suite."""

    name: str
    run: Callable[[Context], Iterable[Mismatch]]
    stage: str = READING
    aside: bool = False

    @property
    def title(self) -> str:
        """What the check proves, in a sentence."""
        return " ".join((self.run.__doc__ or "").split("\n\n")[0].split())


CHECKS: list[Check] = []


def check(name: str, *, stage: str = READING, aside: bool = False) -> Callable[[Callable], Callable]:
    """Register the function as the next check of its stage."""

    def register(function: Callable) -> Callable:
        if any(known.name == name for known in CHECKS):
            raise ValueError(f"two checks are called {name}")
        if stage not in STAGES or (aside and stage != READING):
            raise ValueError(f"check {name}: stage {stage!r}, aside {aside}")
        CHECKS.append(Check(name, function, stage, aside))
        return function

    return register


def all_checks() -> list[Check]:
    """Every check in the order it is run in."""
    import bench.verify.checks  # noqa: F401 - its modules register their checks

    return sorted(CHECKS, key=lambda item: STAGES.index(item.stage))


@dataclass
class Context:
    """What a check works with.

    layers    the layers on the deployment, empty for `none`
    env       environment of the deployment's site, for the site's commands
    pages     first anonymous answers by path, shared by the checks that only look at them
    seen      render ids seen before the database was written to
    posts     ids of the posts that were commented on, to be cleaned up
    load_s    seconds that many clients at once go on asking
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
            self.site.remove_account(future.result(), self.posts, self.env)

    def signed_in(self) -> Browser:
        """The visitor that the `login` check logged in; raises BadAnswer when that failed."""
        if self.browser is None:
            raise BadAnswer("not tried: nobody is logged in, see login")
        return self.browser


def verify_url(
    url: str | Target,
    site: Site,
    *,
    stack: str,
    layer: str,
    env: Mapping[str, str] | None = None,
    declared: Mapping[str, str] | None = None,
    only: Iterable[str] = (),
    load_s: float = LOAD_S,
) -> list[Outcome]:
    """Run the suite against the site served at `url`: one Outcome a check, in their order.

    env       environment of the deployment's site, so that its layers are told when the account is removed
    declared  checks that the stack or layer does not support, with the reason
    only      names of checks to run, all when empty
    load_s    seconds that many clients at once go on asking

    Whatever happens, the account made for it is removed again. Raises BenchError when the site's commands fail or a
    name is not a check's.
    """
    target = url if isinstance(url, Target) else Target.parse(url)
    declared = declared or {}
    chosen = _chosen(only, declared)
    layers = tuple(name for name in layer.split("+") if name != "none")
    context = Context(target, site, layers, env or {}, load_s=load_s)
    needs_account = any(item.stage == ACCOUNT and item.name not in declared for item in chosen)
    with ThreadPoolExecutor(8) as pool:
        if needs_account:
            context.account_future = pool.submit(site.create_account, env)
        try:
            found = dict(_run(context, chosen, declared, pool))
        finally:
            context.remove_account()
    return [_outcome(stack, layer, item.name, found.get(item.name, []), declared) for item in chosen]


def _chosen(only: Iterable[str], declared: Mapping[str, str]) -> list[Check]:
    only = list(only)
    must_know([*only, *declared])
    return [item for item in all_checks() if not only or item.name in only]


def must_know(names: Iterable[str]) -> None:
    """Raise BenchError for a name that is not a check's."""
    known = [item.name for item in all_checks()]
    for name in names:
        if name not in known:
            raise BenchError(f"no check is called {name!r}; the checks are: {', '.join(known)}")


def _run(
    context: Context, chosen: list[Check], declared: Mapping[str, str], pool: ThreadPoolExecutor
) -> Iterator[tuple[str, list[Mismatch]]]:
    """Each check's name with its mismatches, stage by stage; the account is removed beside the last stage."""
    deadline = time.monotonic() + SUITE_LIMIT_S
    todo = [item for item in chosen if item.name not in declared]
    aside = [(item.name, pool.submit(mismatches, item, context)) for item in todo if item.aside]
    yield from _stage(READING, todo, context, deadline)
    # Those beside compare pages too, so they end before the first write.
    for name, future in aside:
        yield name, future.result()
    yield from _stage(ACCOUNT, todo, context, deadline)
    removal = pool.submit(context.remove_account)
    yield from _stage(AFTER, todo, context, deadline)
    removal.result()


def _stage(stage: str, todo: list[Check], context: Context, deadline: float) -> Iterator[tuple[str, list[Mismatch]]]:
    for item in todo:
        if item.stage != stage or item.aside:
            continue
        if time.monotonic() > deadline:
            yield item.name, [Mismatch("an answer", f"not tried: the suite has taken {SUITE_LIMIT_S:g} s already")]
        else:
            yield item.name, mismatches(item, context)


def mismatches(item: Check, context: Context) -> list[Mismatch]:
    """What the check found; a broken connection or an unreadable answer is a finding too."""
    found: list[Mismatch] = []
    try:
        found.extend(item.run(context))
    except BadAnswer as error:
        found.append(Mismatch("a complete answer", str(error)))
    except OSError as error:
        found.append(Mismatch("a complete answer", f"{type(error).__name__}: {error}"))
    except (ValueError, LookupError) as error:
        found.append(Mismatch("an answer that can be read", f"{type(error).__name__}: {error}"))
    return found


def _outcome(stack: str, layer: str, name: str, found: list[Mismatch], declared: Mapping[str, str]) -> Outcome:
    if name in declared:
        return Outcome(stack, layer, name, True, declared=declared[name])
    if not found:
        return Outcome(stack, layer, name, True)
    return Outcome(
        stack, layer, name, False, _joined([item.expected for item in found]), _joined([item.got for item in found])
    )


def _joined(texts: list[str]) -> str:
    shown = [text if len(text) <= LONGEST else text[: LONGEST - 3] + "..." for text in texts[:SHOWN]]
    more = len(texts) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")
