"""The Context that checks work with: the target, its site, and what earlier checks left for later ones."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from bench.catalog.manifest import Layer
from bench.serve.deployment import Running
from bench.verify import wire
from bench.verify.browser import Browser, log_in
from bench.verify.finding import NotTried
from bench.verify.site import Account, Site
from bench.verify.wire import Answer, BadAnswer, Target

# Seconds of load by many clients at once: enough to show a fault, short enough to verify before each measurement.
LOAD_S = 0.3
# How many pages are fetched at a time before the first check.
PREFETCHES = 4


class Accounts:
    """The accounts of the checks: one command makes them all while the first checks run.

    The `login` check and those after it have an account of their own, which is removed before the layer is checked.
    """

    def __init__(
        self,
        site: Site,
        env: Mapping[str, str],
        made: Future[list[Account]] | Callable[[], list[Account]],
        logins: int,
    ):
        self._site = site
        self._env = env
        self._made = made
        self._logins = logins
        self._removed: set[str] = set()

    def _all(self) -> list[Account]:
        if not isinstance(self._made, Future):
            make, self._made = self._made, Future()
            try:
                self._made.set_result(make())
            except Exception as error:
                self._made.set_exception(error)
        return self._made.result()

    def login(self) -> Account:
        """The account of the `login` check."""
        return self._all()[0]

    def member(self, number: int) -> Account:
        """One of the accounts for the checks of the layer, counted from 0."""
        return self._all()[self._logins + number]

    def remove_login(self, posts: list[str]) -> None:
        """Remove the account of the `login` check and its comments on these posts, if they are still there."""
        self._remove(self._logins, posts)

    def remove(self, posts: list[str]) -> None:
        """Remove all accounts that are left, and their comments on these posts."""
        self._remove(None, posts)

    def _remove(self, end: int | None, posts: list[str]) -> None:
        if not isinstance(self._made, Future):
            return
        with contextlib.suppress(NotTried):
            left = [item for item in self._made.result()[:end] if item.username not in self._removed]
            if left:
                self._removed |= {item.username for item in left}
                self._site.remove_accounts(left, posts, self._env)


@dataclass
class Context:
    """What a check works with.

    layers    the layers of the deployment, empty for `none`
    env       environment of the deployment's site, for the site's commands
    pages     first anonymous answers by path, shared by the checks that only look at them
    seen      render ids seen before the database was written to
    posts     ids of the posts that checks commented on, for the cleanup
    load_s    seconds of load by many clients at once
    running   the deployment, for checks that stop a service of it; None for a --target
    accounts  the accounts of the checks; None if no check needs one
    browser   the visitor whom the `login` check logged in
    browsers  the logged-in visitors of the other accounts, by their number
    clones    the same deployment brought up once more with other values; see layer_facts.clone
    exits     the cleanup at the end of the suite
    """

    target: Target
    site: Site
    layers: tuple[Layer, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    pages: dict[str, Answer] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    posts: list[str] = field(default_factory=list)
    load_s: float = LOAD_S
    running: Running | None = None
    accounts: Accounts | None = None
    browser: Browser | None = None
    browsers: dict[int, Browser] = field(default_factory=dict)
    clones: dict[str, Context] = field(default_factory=dict)
    exits: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def get(
        self,
        path: str | bytes,
        headers: wire.Headers = (),
        *,
        method: str = "GET",
        body: bytes | None = None,
        host: str | None = "",
    ) -> Answer:
        """The answer to one anonymous request on its own connection; for the keywords see wire.build."""
        answer = wire.fetch(self.target, path, headers, method=method, body=body, host=host)
        if answer.render_id:
            self.seen.add(answer.render_id)
        return answer

    def first(self, path: str) -> Answer:
        """The first anonymous answer for `path`, fetched once."""
        if path not in self.pages:
            self.pages[path] = self.get(path)
        return self.pages[path]

    def prefetch(self, paths: Iterable[str]) -> None:
        """Fetch `paths` a few at a time, which also wakes every worker; first() reports a failure."""
        with ThreadPoolExecutor(PREFETCHES) as pool:
            list(pool.map(self._try_first, paths))

    def _try_first(self, path: str) -> None:
        with contextlib.suppress(BadAnswer, OSError):
            self.first(path)

    @property
    def strict(self) -> bool:
        """Whether nothing of what the site does itself is excused."""
        return self.site.description.strict

    @property
    def bypass(self) -> dict[str, str]:
        """A session cookie of nobody: every layer passes such a request to the application."""
        return {"Cookie": f"{self.site.session_cookie}=nobody"}

    def login_account(self) -> Account:
        """The account of the `login` check, once it is made."""
        assert self.accounts is not None
        return self.accounts.login()

    def signed_in(self) -> Browser:
        """The visitor whom the `login` check logged in; raises BadAnswer when that failed."""
        if self.browser is None:
            self.login_account()  # raises NotTried where none can be made
            raise BadAnswer("not tried: nobody is logged in, see login")
        return self.browser

    def member(self, number: int) -> Account:
        """One of the accounts for the checks of the layer, counted from 0."""
        assert self.accounts is not None
        return self.accounts.member(number)

    def browser_of(self, number: int) -> Browser:
        """That account's visitor, logged in once for all checks because password hashing is slow on purpose."""
        if number not in self.browsers:
            self.browsers[number] = log_in(self.target, self.site, self.member(number))
        return self.browsers[number]
