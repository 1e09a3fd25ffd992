"""The Context of the checks: the deployment under test, and results of earlier checks for later ones."""

from __future__ import annotations

import contextlib
import ipaddress
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from bench.serve.catalog.manifest import Layer
from bench.serve.catalog.names import NO_LAYER
from bench.serve.deployment.deployment import Running
from bench.serve.machine import http
from bench.serve.machine.http import BadResponse, Target
from bench.verify import wire
from bench.verify.expect import Expectation, wrong_of
from bench.verify.in_process import as_in_process
from bench.verify.mismatch import NEEDS_OWN, Finding, NotTried
from bench.verify.site import Account, Site
from bench.verify.visitor import Visitor, log_in
from bench.verify.wire import PageResponse

# Seconds of load by many clients at once: enough to show a fault, short enough to verify before each measurement.
LOAD_S = 0.3
# Number of accounts for the checks of the layer.
MEMBERS = 2
# Number of pages fetched at a time before the first check.
PREFETCHES = 4
# The listener for requests of a load balancer.
BEHIND = "behind"
# The excuse for what the project's own code sends below the static files.
OWN_STATIC = "own static"


# Client addresses on this machine.
LOOPBACK = ("127.0.0.1", "127.0.0.9")


def target_of(running: Running) -> Target:
    """The target of a deployment, requested from an address that is not a trusted proxy if this machine has one."""
    target, settings = Target.parse(running.url), running.case.settings
    if settings.get("listener") != BEHIND:
        return target
    others = [address for address in LOOPBACK if not is_trusted(address, settings)]
    return replace(target, source=next(iter(others), ""))


def is_trusted(address: str, settings: Mapping[str, Any]) -> bool:
    """True if the address is a trusted proxy."""
    return any(ipaddress.ip_address(address) in network for network in settings["proxies"])


class NeedsExclusive(Exception):
    """A check that is made beside others cannot go on: it takes pages out of the layers."""


@dataclass
class Accounts:
    """The accounts of the checks: one command makes all of them at first use, one removes them."""

    site: Site
    env: Mapping[str, str]
    # Checks that run at the same time may need accounts: only one of them makes them, or logs a member in.
    lock: threading.RLock = field(default_factory=threading.RLock)
    _created: list[Account] | None = None

    @property
    def created(self) -> list[Account]:
        """The account of the `login` check and later checks, then two members for the checks of the layer."""
        with self.lock:
            if self._created is None:
                self._created = self.site.create_accounts(1 + MEMBERS, self.env)
            return self._created

    def remove(self) -> None:
        """Remove the accounts, if any were made."""
        if self._created is not None:
            self.site.remove_accounts(self._created, self.env)


@dataclass
class Context:
    """Context of a check.

    layers        the layers of the deployment, empty for `none`
    accounts      the accounts of the checks
    env           environment of the deployment's site, for the site's commands
    stack         name of the stack
    declared      checks that the stack or layer does not support -> the reason
    options       the options of `up` that serve the same again, in addition to the stack and its layers
    pages         first anonymous responses by path, shared by checks that only read
    render_ids    render ids seen before the database was written to
    load_s        seconds of load by many clients at once
    running       the deployment, such as to count its database connections; None for a --target
    visitor       the visitor whom the `login` check logged in
    members       the logged-in visitors of the other accounts, by their number
    clones        the same deployment brought up once more with other values
    exits         the cleanup at the end of the suite
    is_exclusive  whether no other check is made meanwhile
    dependent     the project's pages that differ between clients; None until a check needs them
    showing_session  the project's pages with another text for a session of nobody, found with `dependent`
    lock          held by the check that finds them
    """

    target: Target
    site: Site
    layers: tuple[Layer, ...]
    accounts: Accounts
    env: Mapping[str, str] = field(default_factory=dict)
    stack: str = ""
    declared: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    pages: dict[str, PageResponse] = field(default_factory=dict)
    render_ids: set[str] = field(default_factory=set)
    load_s: float = LOAD_S
    running: Running | None = None
    visitor: Visitor | None = None
    members: dict[int, Visitor] = field(default_factory=dict)
    clones: list[Context] = field(default_factory=list)
    exits: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    is_exclusive: bool = True
    dependent: list[str] | None = None
    showing_session: frozenset[str] = frozenset()
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.layers = tuple(layer for layer in self.layers if not layer.is_none)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The values of the deployment; empty for a --target."""
        if self.running is None:
            return {}
        return self.running.case.settings

    def get(self, path: str | bytes, headers: http.Headers = (), **how: Any) -> PageResponse:
        """The response to one anonymous request on its own connection; `how` is method, body, host: see http.build."""
        response = wire.fetch(self.target, path, headers, **how)
        if response.render_id:
            self.render_ids.add(response.render_id)
        return response

    def expect(
        self, path: str | bytes, *right: Expectation, headers: http.Headers = (), when: str = "", **how: Any
    ) -> Generator[Finding, None, PageResponse]:
        """Send one anonymous request and compare the response; yields findings and returns the response.

        when  words behind the request, such as "after an edit"
        """
        response = self.get(path, headers, **how)
        yield from self.judge(response, *right, when=when)
        return response

    def judge(
        self, response: PageResponse, *right: Expectation, when: str = "", excuse: str = ""
    ) -> Generator[Finding]:
        """Compare a response; yields a Mismatch with the excuse.

        when  the whole request in words if `wire` did not build the request
        """
        if wrong := wrong_of(response, right):
            what = ""
            if when:
                what = f"{response.sent or ''} {when}".strip()
            yield response.wrong(*wrong, what=what, excuse=excuse)

    def as_rendered(self, path: str) -> Expectation:
        """Expect type and text of the page as rendered in process."""
        expected = self.site.pages[path]

        def wrong(response: PageResponse) -> str | None:
            if response.content_type != expected.content_type:
                return f"Content-Type {response.header('Content-Type')}, not {expected.content_type}"
            difference = expected.difference(as_in_process(response.text, self.target))
            return difference and f"{difference[1]} instead of {difference[0]}"

        return Expectation("the page as it is rendered in process", wrong)

    def first(self, path: str) -> PageResponse:
        """The first anonymous response for `path`, fetched once."""
        return self.pages.get(path) or self.pages.setdefault(path, self.get(path))

    def prefetch(self, paths: Iterable[str]) -> None:
        """Fetch `paths` a few at a time, which also wakes every worker; first() reports a failure."""
        with ThreadPoolExecutor(PREFETCHES) as pool:
            list(pool.map(self._try_first, paths))

    def _try_first(self, path: str) -> None:
        with contextlib.suppress(BadResponse, OSError):
            self.first(path)

    @property
    def layer(self) -> str:
        """Names of the layers, joined by "+"."""
        return "+".join(layer.name for layer in self.layers) or NO_LAYER

    @property
    def strict(self) -> bool:
        """True if no deviation of the project is excused."""
        return self.site.description.strict

    @property
    def bypass(self) -> dict[str, str]:
        """The session cookie of nobody, which makes every layer pass a request to the application."""
        return {"Cookie": f"{self.site.session_cookie}=nobody"}

    @property
    def time_to_live_s(self) -> float:
        """Seconds for which layers store a page; 0 if unknown, as with --target."""
        if not self.running:
            return 0
        return float(self.running.case.settings["cache_seconds"])

    def require_exclusive(self) -> None:
        """Raise NeedsExclusive while other checks are made."""
        if not self.is_exclusive:
            raise NeedsExclusive

    @property
    def own(self) -> Running:
        """The deployment that the instrument started; raises NotTried for a --target."""
        if self.running is None:
            raise NotTried(NEEDS_OWN)
        return self.running

    def clone(self, changes: dict[str, Any], **env: str) -> Context:
        """Start the same deployment again with some values changed, until the suite ends; returns its context.

        Checks with the same changes share one clone. Raises NotTried if the instrument did not bring the site up.

        env  more environment of the site
        """
        options = list(self.options)
        for option, given in (("--set", changes), ("--env", env)):
            for name, value in given.items():
                options += [option, f"{name}={value}"]
        for clone in self.clones:
            if clone.options == tuple(options):
                return clone
        running = self.exits.enter_context(self.own.again(changes, **env))
        clone = replace(self.beside(running), options=tuple(options))
        self.clones.append(clone)
        return clone

    def beside(self, running: Running) -> Context:
        """A context of another deployment of the same site."""
        target = target_of(running)
        return replace(
            self,
            target=target,
            running=running,
            env=running.env,
            pages={},
            render_ids=set(),
            members={},
            dependent=None,
            showing_session=frozenset(),
        )

    def signed_in(self) -> Visitor:
        """The visitor whom the `login` check logged in; raises BadResponse if that failed."""
        if self.visitor is None:
            self.accounts.created[0]  # raises NotTried if no account can be made
            raise BadResponse("not tried: nobody is logged in, see login")
        return self.visitor

    def member_visitor(self, number: int) -> Visitor:
        """A member, counted from 0, logged in once for all checks because password hashing is slow on purpose."""
        with self.accounts.lock:
            if number not in self.members:
                self.members[number] = log_in(self.target, self.site, self.accounts.created[1 + number])
            return self.members[number]


def as_in_project(site: Site, statuses: Mapping[str, int]) -> set[str]:
    """The paths to which the project, rendered in process now, responds with these statuses, too."""
    if not (statuses and site.has_database):
        return set()
    pages = site.rendered_now(*statuses)
    return {path for path, status in statuses.items() if pages[path].status == status}


def judge_static(context: Context, path: str, *right: Expectation) -> Iterator[Finding]:
    """Compare the response at a path below the static files; OWN_STATIC if the project serves them itself."""
    response = context.get(path)
    if wrong := wrong_of(response, right):
        excuse = ""
        if path in as_in_project(context.site, {path: response.status}):
            excuse = OWN_STATIC
        yield response.wrong(*wrong, excuse=excuse)
