"""The expected answers of the site, which its own commands give once for each database.

The instrument never imports the site. `manage.py siteurls` names one real URL of every kind, and `manage.py
renderpages` renders them in process, without a server and without a layer. Every deployment of the same database must
answer the same.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from bench.errors import BenchError, GlobalFault
from bench.host import orphans
from bench.project.commands import COMMANDS_ENV
from bench.verify.page_parser import normalised

TIMEOUT_S = 60
# What a command takes over from the caller's environment; other variables could change the site's answers.
INHERITED = ("PATH", "LANG", "LC_ALL", "TMPDIR")

# Paths to which the site must answer 404 with its own page.
UNKNOWN_PATH = "/no/such/page/"
BEYOND_PATHS = (
    "/authors/page/999999999/",
    "/posts/page/999999999/",
    "/comments/page/999999999/",
    "/posts/page/0/",
    "/authors/999999999/",
    "/posts/999999999/",
)


class DatabaseChanged(GlobalFault):
    """Somebody else changed the rows while a deployment was verified, so differences prove nothing about it."""


@dataclass(frozen=True)
class Expected:
    """An answer rendered in process; `content_type` as in Answer.content_type."""

    status: int
    content_type: str
    body: str

    @property
    def comparable(self) -> tuple[int, str, str]:
        """What is the same in each rendering of the same rows."""
        return self.status, self.content_type, normalised(self.body)

    @property
    def is_html(self) -> bool:
        return self.content_type.startswith("text/html")


@dataclass(frozen=True)
class Account:
    """An ordinary account, made for the checks of one deployment and removed after them."""

    username: str
    password: str


@dataclass(frozen=True)
class Site:
    """The site's expected answers, and its commands.

    urls    one real path of every kind, by the kind's name
    pages   the expected answer by path
    static  the directory of the static files' sources
    env     environment of the commands
    prefix  words before each command, which run it as the servers' user
    """

    urls: Mapping[str, str]
    pages: Mapping[str, Expected]
    static: Path
    python: Path
    manage_py: Path
    env: Mapping[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()

    # Whether its commands can reach its database.
    has_database: ClassVar[bool] = True

    def url(self, *kinds: str) -> str:
        """The path of the first of these kinds that the site has; raises BenchError when it has none."""
        for kind in kinds:
            if kind in self.urls:
                return self.urls[kind]
        raise BenchError(
            f"manage.py siteurls names no URL of the kind {' or '.join(kinds)}; it names {', '.join(self.urls)}"
        )

    @property
    def html_paths(self) -> list[str]:
        """Paths that answer 200 with a page of HTML, in the site's order."""
        return [path for path, page in self.pages.items() if page.status == 200 and page.is_html]

    @property
    def plain_paths(self) -> list[str]:
        """One path for each kind of public HTML page, without second pages and the login form."""
        kinds = [kind for kind in self.urls if not kind.endswith(("_page", "_middle", "_last")) and kind != "login"]
        paths = dict.fromkeys(self.urls[kind] for kind in kinds)
        return [path for path in paths if path in self.html_paths]

    def create_accounts(self, count: int, env: Mapping[str, str] | None = None) -> list[Account]:
        """Make accounts, and remove those that killed instruments left; raises BenchError when that fails."""
        made = self._command(["verifyaccount", "create", "--count", str(count), "--owner", orphans.owner()], env)
        left = [other["username"] for other in made.get("others", []) if orphans.is_gone(other["owner"])]
        if left:
            self._command(["verifyaccount", "prune", *left], env, reads=False)
        return [Account(item["username"], item["password"]) for item in made["accounts"]]

    def remove_accounts(self, accounts: list[Account], posts: list[str], env: Mapping[str, str] | None = None) -> None:
        """Remove the accounts and their comments on `posts` (ids); raises BenchError when the command fails."""
        named = [word for post in posts for word in ("--post", post)]
        self._command(["verifyaccount", "delete", *(item.username for item in accounts), *named], env, reads=False)

    def remove_probes(self, env: Mapping[str, str] | None = None) -> None:
        """Remove the rows that probes made and did not remove; raises BenchError when the command fails."""
        self._command(["removeprobes"], env, reads=False)

    def write_row(self, author: int, what: str, env: Mapping[str, str]) -> dict[str, Any]:
        """Change a probe's row by a command, outside of the servers; raises BenchError when it fails."""
        found: dict[str, Any] = self._command(["writerow", str(author), what], env)
        return found

    def is_outdated(self) -> bool:
        """Whether a page is another one now than when the expected pages were rendered."""
        rendered = self._command(["renderpages", *self.pages], None)
        return any(_expected(path, rendered).comparable != page.comparable for path, page in self.pages.items())

    def _command(self, words: list[str], env: Mapping[str, str] | None, *, reads: bool = True) -> Any:
        return _manage(self.prefix, self.python, self.manage_py, {**self.env, **(env or {})}, words, reads)


def prepare(
    database_url: str | None,
    env: Mapping[str, str],
    python: Path | str,
    manage_py: Path | str,
    *,
    prefix: tuple[str, ...] = (),
) -> Site:
    """Ask the site for its expected answers with two commands, once for each database.

    database_url  None leaves the choice to `env` and the site's default
    env           environment of the site as its servers have it, without layers
    prefix        words before each command, which run it as the servers' user

    Raises BenchError when a command fails or its answers cannot be used.
    """
    manage_py = Path(manage_py)
    environment = {name: os.environ[name] for name in INHERITED if name in os.environ} | dict(env)
    if database_url is not None:
        environment["DATABASE_URL"] = database_url
    python = Path(python)
    urls = _manage(prefix, python, manage_py, environment, ["siteurls", "--json"])
    paths = [path for path in dict.fromkeys([*urls.values(), UNKNOWN_PATH, *BEYOND_PATHS]) if _is_page(path)]
    rendered = _manage(prefix, python, manage_py, environment, ["renderpages", *paths])
    pages = {path: _expected(path, rendered) for path in paths}
    home = urls.get("home", "/")
    if pages.get(home, Expected(0, "", "")).status != 200:
        raise BenchError(
            f"manage.py renderpages {home}: status {pages[home].status if home in pages else None}, not 200; "
            "load rows with ./manage.py loadfixtures, then try again"
        )
    return Site(urls, pages, manage_py.parent / "static", python, manage_py, environment, prefix)


def _is_page(path: str) -> bool:
    # Static files are compared with their sources instead.
    return path.startswith("/") and not path.startswith("/static/")


def _expected(path: str, rendered: Mapping[str, Any]) -> Expected:
    try:
        answer = rendered[path]
        return Expected(answer["status"], "".join(answer["content_type"].lower().split()), answer["body"])
    except (KeyError, TypeError, AttributeError):
        raise BenchError(f"manage.py renderpages {path}: no status, content_type and body in its answer") from None


def _manage(
    prefix: tuple[str, ...], python: Path, manage_py: Path, env: Mapping[str, str], words: list[str], reads: bool = True
) -> Any:
    """Run one command of the site and read the JSON object it prints."""
    name = f"manage.py {words[0]}"
    argv = [*prefix, str(python), str(manage_py), *words]
    try:
        done = subprocess.run(
            argv,
            env={**env, **COMMANDS_ENV},
            cwd=manage_py.parent,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except OSError as error:
        raise BenchError(f"{name}: cannot start {argv[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise BenchError(f"{name}: no end after {TIMEOUT_S} s; is the database locked by another program?") from None
    if done.returncode != 0:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise BenchError(f"{name} exited with status {done.returncode}: {lines[-1] if lines else 'it wrote nothing'}")
    if not reads:
        return None
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise BenchError(f"{name}: printed {done.stdout[:80]!r}, not a JSON object")
    return answer
