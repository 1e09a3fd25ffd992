"""The expected responses of the project, rendered by its own interpreter once for each database.

The instrument never imports the project. Its description names public pages, `manage.py siteurls` the pages of the
probes, and `manage.py renderpages` renders them in process, without a server and without a layer. Every deployment of
the same database must give the same responses.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from bench.errors import BenchError, GlobalFault
from bench.serve.deployment import database
from bench.serve.deployment.database import Database
from bench.serve.machine import orphans
from bench.serve.project import commands, run_command
from bench.serve.project.commands import COMMANDS_ENV
from bench.serve.project.description import FILE, Description
from bench.serve.project.health import CORRECT, UNKNOWN_PATH, way_in
from bench.serve.project.inspection import CSRF_COOKIE, SESSION_COOKIE
from bench.serve.project.opened import UnderTest
from bench.serve.project.run_command import Interpreter
from bench.verify.in_process import ExpectedPage, expected_page
from bench.verify.mismatch import NEEDS_DATABASE, NotTried

TIMEOUT_S = 180
# Number of public pages requested by several visitors.
MAX_PAGES = 12

# Probe page about a worker, and a page of the kit inside the project's middleware.
INSIDE = "/__probe__/inside"
PROBE_PAGE = "/__probe__/page/rendered-in-process/"
INTERPRETER = ("python", "django", "prefix", "base_prefix", "django_path")
REPORTED = ("session_cookie", "token_cookie", "has_sessions", "admin_login")
# Suffixes of kinds of pages in a project's own probes: beyond the last page, a redirect, and the second page of a list,
# whose path ends with the page number.
BEYOND, REDIRECT, LIST_PAGE = "_beyond", "_redirect", "_page"
SLASH_REDIRECT = f"slash{REDIRECT}"
# Kinds that stand for a page of another kind.
ROLES = ("list", "login")
NOT_PLAIN = (LIST_PAGE, "_middle", "_last", BEYOND, REDIRECT)
# Static files, one of each: a small text of some lines, and the largest that is no video.
SMALL_TYPES, SMALL_BYTES, LARGE_BYTES = (".css", ".js", ".txt", ".svg"), 50, 5_000_000
# Files added by collectstatic.
COLLECTED = re.compile(r"\.[0-9a-f]{8,}\.[^./]+$|\.(gz|br)$|(^|/)staticfiles\.json$")


class DatabaseChanged(GlobalFault):
    """Another program changed the rows during verification, so differences prove nothing about the deployment."""


@dataclass(frozen=True)
class Account:
    """An ordinary account, made for the checks of one deployment and removed afterwards."""

    username: str
    password: str


@dataclass(frozen=True)
class Site:
    """The site's expected responses, and its commands.

    urls         one real path of every kind, by the kind's name
    pages        the expected response by path
    static       the directory of its static files, and static_url the URL below which they are served
    runner       runs its commands, as the servers' user; env is their environment
    description  the project's description
    may_write    whether checks may write to the database; is_copy: whether the database is the kit's, a copy or private
    interpreter  Python and Django of the commands, as the probe `inside` shows
    session_cookie  the name of the session cookie; has_sessions: whether the project has sessions
    token_cookie    the name of the cookie with a visitor's CSRF token, or of the session with the token; or empty
    media        the directory of uploads, which need not exist
    media_url    the URL of uploads; admin_login: the path of the admin's login page; each may be empty
    sends_uploads  whether a server of the stack sends uploads; Django never does
    has_database   whether commands can reach the database: otherwise no page is expected, and nothing is written
    varying        the names of headers on every page that differ between renderings
    rows           a text that changes with each write to the database; None if unknown
    """

    urls: Mapping[str, str]
    pages: Mapping[str, ExpectedPage]
    static: Path
    static_url: str
    runner: Interpreter
    env: Mapping[str, str] = field(default_factory=dict)
    description: Description = field(default_factory=Description)
    may_write: bool = False
    is_copy: bool = False
    interpreter: Mapping[str, str] = field(default_factory=dict)
    session_cookie: str = SESSION_COOKIE
    token_cookie: str = CSRF_COOKIE
    has_sessions: bool = True
    admin_login: str = ""
    media: Path = Path("no uploads")
    media_url: str = ""
    sends_uploads: bool = True
    has_database: bool = True
    varying: frozenset[str] = frozenset()
    rows: str | None = None

    @property
    def has_rows(self) -> bool:
        """True if the site has probes that name kinds of pages and write rows; assumed for a --target."""
        return "section" in self.urls or not self.has_database

    def url(self, *kinds: str) -> str:
        """The path of the first of these kinds; raises NotTried if the site has none."""
        for kind in kinds:
            if kind in self.urls:
                return self.urls[kind]
        if kinds[-1] == "login":
            raise NotTried(f"the project describes no login: [tool.benchapp.login] in its {FILE}")
        raise NotTried("only the kit's own site has such pages")

    def paths(self, *kinds: str) -> list[str]:
        """The paths of these kinds, without kinds that the site does not have, each once."""
        return list(dict.fromkeys(self.urls[kind] for kind in kinds if kind in self.urls))

    def paths_ending(self, suffix: str) -> list[str]:
        """The paths of all kinds with this suffix."""
        return [path for kind, path in self.urls.items() if kind.endswith(suffix)]

    @property
    def main_paths(self) -> list[str]:
        """Home, a list and a detail page, or the first of a project's public pages."""
        return self.paths("home", "list", "detail")

    @property
    def html_paths(self) -> list[str]:
        """Paths of HTML pages with status 200, in the site's order."""
        return [path for path, page in self.pages.items() if page.status == 200 and page.is_html]

    @property
    def plain_paths(self) -> list[str]:
        """One path for each kind of public HTML page, without second pages and the login form."""
        kinds = [kind for kind in self.urls if not kind.endswith(NOT_PLAIN) and kind not in ROLES]
        return [path for path in self.paths(*kinds) if path in self.html_paths]

    def expected(self, path: str) -> ExpectedPage:
        """The page as rendered in process; for an unknown path only the headers that vary."""
        known = self.has_database and path in self.pages
        if known:
            return self.pages[path]
        return ExpectedPage(0, "", "", varying=self.varying)

    @property
    def public_paths(self) -> list[str]:
        return [path for path in self.description.public if path in self.html_paths]

    def proof(self, account: Account) -> str:
        """The text shown only on pages for this account."""
        login = self.description.login
        if login:
            return login.proof.replace("{name}", account.username)
        return account.username

    @property
    def proof_paths(self) -> list[str]:
        """The pages with the proof of the account."""
        return list(dict.fromkeys([*filter(self.description.shows_account, self.plain_paths), self.url("account")]))

    @property
    def small_files(self) -> list[str]:
        """A small static file, if the site has one."""
        return self.paths("static_small")

    @property
    def has_404(self) -> bool:
        """True if an unknown path gets a 404: a project may have a page for any path."""
        return not self.has_database or self.pages[UNKNOWN_PATH].status == 404

    def create_accounts(self, count: int, env: Mapping[str, str] | None = None) -> list[Account]:
        """Create accounts and remove leftovers of killed instruments, or use the accounts named in the description.
        Raises BenchError on failure, NotTried if the project has no login."""
        self.url("login")
        self.require_writes()
        if named := _named_accounts(self):
            return described_accounts(named, {**os.environ, **self.env}, count)
        words = ["verifyaccount", "create", "--count", str(count), "--owner", orphans.owner(), *_rights(self)]
        output = self._command(words, env)
        left = [other["username"] for other in output.get("others", []) if orphans.is_gone(other["owner"])]
        if left:
            self._command(["verifyaccount", "delete", *left], env, reads=False)
        return [Account(item["username"], item["password"]) for item in output["accounts"]]

    def remove_accounts(self, accounts: list[Account], env: Mapping[str, str] | None = None) -> None:
        """Remove the accounts and their contents; raises BenchError if the command fails."""
        if not _named_accounts(self):
            self._command(["verifyaccount", "delete", *(item.username for item in accounts)], env, reads=False)

    def require_writes(self) -> None:
        """Raise NotTried unless checks may write to the project's database."""
        self.require_database()
        if not self.may_write:
            raise NotTried(
                "it writes to the project's own database: give --allow-writes to allow that, or another --database"
            )

    def require_database(self) -> None:
        """Raise NotTried unless commands can reach the project's database."""
        if not self.has_database:
            raise NotTried(NEEDS_DATABASE)

    def remove_probes(self, env: Mapping[str, str] | None = None) -> None:
        """Remove leftover rows of probes; raises BenchError if the command fails."""
        self._command(["proberows", "remove"], env)

    def write_row(self, author: int, what: str, env: Mapping[str, str]) -> Any:
        """Change a probe's row by a command, outside of the servers; raises BenchError on failure."""
        return self._command(["proberows", "write", str(author), what], env)

    def run_write(self, words: list[str], env: Mapping[str, str]) -> None:
        """Run the described command to change a page; raises BenchError on failure."""
        self.require_writes()
        self._command(words, env, reads=False)

    def rendered_now(self, *paths: str, often: bool = False) -> dict[str, ExpectedPage]:
        """Render these pages now; `often`: show the differences between renderings."""
        words = ["renderpages"]
        if often:
            words.append("--often")
        rendered = self._command([*words, *paths], None)
        return {path: expected_page(path, rendered) for path in paths}

    def _command(self, words: list[str], env: Mapping[str, str] | None, *, reads: bool = True) -> Any:
        self.require_database()
        return _manage(self.runner, {**self.env, **(env or {})}, words, reads)


def rows_now(site: Site) -> str | None:
    """A text that changes with each write to the database; None if unknown."""
    return cast(str | None, site._command(["writtenrows"], None)["written"])


def _named_accounts(site: Site) -> tuple[str, ...]:
    if not site.description.login:
        return ()
    return site.description.login.users_env


def _rights(site: Site) -> list[str]:
    """Arguments for the permissions of accounts; raises NotTried if accounts may have none."""
    if site.description.login is None or not site.description.login.superuser:
        return []
    if not site.is_copy:
        raise NotTried("superusers are made only in a copy of the database: name two accounts with users_env")
    return ["--superuser"]


def described_accounts(variables: Iterable[str], env: Mapping[str, str], count: int) -> list[Account]:
    """The accounts named by environment variables; one account may stand for several, as none is removed.

    Raises BenchError for an unusable variable.
    """
    accounts = []
    for variable in variables:
        name, colon, password = env.get(variable, "").partition(":")
        if not (name and colon and password):
            raise BenchError(
                f"{variable}: not set to NAME:PASSWORD; set it here or in env_file, or leave users_env out of {FILE}"
            )
        accounts.append(Account(name, password))
    return list(islice(cycle(accounts), count))


def discover_site(
    project: UnderTest, chosen: Database, url: str, write: bool, env: Mapping[str, str] | None = None
) -> Site:
    """The project's site with its URLs, without expected pages.

    chosen  the database, whose address is `url`
    write   the user allows writes to a database that is not the kit's
    env     more variables for the commands

    Raises BenchError if a command fails or its output cannot be used.
    """
    ours = database.is_ours(project, chosen)
    site = Site(
        {},
        {},
        project.static_root,
        project.names["static_url"],
        commands.interpreter(project, project.worker()),
        command_env(project, url, env),
        project.description,
        may_write=write or ours,
        is_copy=ours,
        media=project.media_root,
        media_url=project.names["media_url"],
    )
    return with_urls(site)


def command_env(project: UnderTest, url: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of the project's commands, with the database at `url`."""
    return project.environment({**commands.site_environment(project, url), **(more or {})})


def with_urls(site: Site) -> Site:
    """Add the site's URLs: from the description, from the probes, and of static files."""
    urls = described_urls(site.description) | site._command(["siteurls"], None)
    return replace(site, urls=urls | static_urls(site.static, site.static_url))


def prepare(site: Site) -> Site:
    """Render the expected pages, once for each database.

    Raises BenchError if a command fails or its output cannot be used.
    """
    paths = [
        path for path in dict.fromkeys([*site.urls.values(), UNKNOWN_PATH]) if not path.startswith(site.static_url)
    ]
    rows = rows_now(site)
    rendered = site._command(["renderpages", INSIDE, PROBE_PAGE, *paths], None)
    pages = {path: expected_page(path, rendered) for path in paths}
    site = replace(site, pages=pages, rows=rows, varying=expected_page(PROBE_PAGE, rendered).varying)
    _require_pages(site)
    if (unknown := rendered[UNKNOWN_PATH])["status"] >= 500:
        why = f"status {unknown['status']}: {unknown.get('error', 'no reason')}"
        raise BenchError(f"manage.py renderpages {UNKNOWN_PATH}: {why}; correct its page for errors, then try again")
    # Without the probe, another response comes.
    facts = rendered.get(INSIDE, {})
    if facts.get("status") in (302, 401, 403):
        raise BenchError(
            f"manage.py renderpages {INSIDE}: status {facts['status']}: let paths below /__probe__/ through its own "
            "middleware if BENCHAPP_PROBES is 1 in the environment, then try again"
        )
    inside = {}
    if facts.get("content_type", "").startswith("application/json"):
        inside = json.loads(facts["body"])
    interpreter = {name: inside[name] for name in INTERPRETER if name in inside}
    reported = {name: inside[name] for name in REPORTED if name in inside}
    site = replace(site, interpreter=interpreter, **reported)
    if "list" in site.urls:
        return site
    return _with_main_pages(site)


def described_urls(description: Description) -> dict[str, str]:
    """The paths named by a project, by kind; without public pages, the entry page."""
    public = description.first_pages
    urls = {"home": public[0]} | {f"public_{number}": path for number, path in enumerate(public, 1)}
    urls["health"] = description.health
    if slashed := [path for path in public if path.endswith("/") and path != "/"]:
        urls[SLASH_REDIRECT] = slashed[0].rstrip("/")
    if description.login:
        urls |= {"login": description.login.url, "account": description.login.account}
    return urls


def static_urls(folder: Path, static_url: str) -> dict[str, str]:
    """A small and a large static file of a folder, by kind, if present."""
    sized = []
    for path in filter(Path.is_file, folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not COLLECTED.search(name):
            sized.append((path.stat().st_size, name))
    small = large = ""
    for size, name in sorted(sized):
        if not small and size >= SMALL_BYTES and name.endswith(SMALL_TYPES):
            small = name
        if size <= LARGE_BYTES:
            large = name
    urls = {}
    if small:
        urls["static_small"] = static_url + quote(small)
    if large:
        urls["static_large"] = static_url + quote(large)
    return urls


def _require_pages(site: Site) -> None:
    """Raise BenchError if the home page is no page."""
    home = site.urls["home"]
    page = site.pages[home]
    if page.status == 200:
        return
    problem = f"status {page.status}, not 200"
    if page.location:
        problem = f"it redirects to {page.location}"
    remedy = way_in(page.status, page.location)
    if not page.location and (page.status == 404 or page.status >= 500):
        remedy = f"correct public in [tool.benchapp] of {FILE}"
        if page.status >= 500:
            remedy = f"{CORRECT}, or {remedy}"
        elif site.description.setup:
            # A missing page may only lack rows.
            setup = " && ".join(f"./manage.py {command}" for command in site.description.setup)
            remedy = f"run {setup}, or {remedy}"
    raise BenchError(f"manage.py renderpages {home}: {problem}; {remedy}, then try again")


def _with_main_pages(site: Site) -> Site:
    """Add a list and a detail page: the project's second and third public page.

    A health check is excluded, because no layer caches health checks.
    """
    pages = [path for path in site.plain_paths if path not in site.description.health_checks]
    html = dict.fromkeys([*site.public_paths, *pages])
    return replace(site, urls={**site.urls, **dict(zip(("home", "list", "detail"), html, strict=False))})


def _manage(runner: Interpreter, env: Mapping[str, str], words: list[str], reads: bool) -> Any:
    """Run one command of the site and parse the JSON."""
    name = f"manage.py {words[0]}"
    try:
        done = run_command.run(runner, words, {**env, **COMMANDS_ENV}, TIMEOUT_S)
    except OSError as error:
        raise BenchError(f"{name}: cannot start {(*runner.prefix, runner.python)[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise BenchError(f"{name}: no end after {TIMEOUT_S} s; is the database locked by another program?") from None
    if done.returncode != 0:
        why = run_command.problem(done.stderr or done.stdout) or "it wrote nothing"
        raise BenchError(f"{name} exited with status {done.returncode}: {why}")
    if not reads:
        return None
    try:
        response = json.loads(done.stdout)
    except ValueError:
        response = None
    if not isinstance(response, dict):
        raise BenchError(f"{name}: printed {done.stdout[:80]!r}, not a JSON object")
    return response
