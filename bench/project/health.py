"""Whether a project can say that it serves: its pages are rendered in process before any server is started."""

from __future__ import annotations

import json
import re
from typing import NoReturn

from bench.errors import BenchError
from bench.machine.identity import Identity
from bench.project import commands
from bench.project.description import FILE
from bench.project.inspection import Page
from bench.project.under_test import PLAIN, UnderTest

HOME = "/"
# What no project has: its page for errors is rendered, too.
UNKNOWN_PATH = "/no/such/page/"
# A page that raises an exception may lack rows or files alone.
CORRECT = "correct it, make what it needs by a command (setup, build in [tool.benchapp])"
OF_DATABASE = re.compile("OperationalError|ProgrammingError")
LOGS_IN = re.compile(r"\b(log|sign)[-_]?in\b", re.I)
LOGIN = """describe the login, and measure pages that need none: in [tool.benchapp] of {file} public = [...], then
[tool.benchapp.login], url = "{url}", page = "/", proof = "{{name}}\""""
# How code refuses visitors that it does not expect, and a redirect to another host or to HTTPS.
REFUSED = (400, 401, 403, 404)
LEAVES = re.compile(r"https?://(?!127\.0\.0\.1[:/])")
LET_IN = (
    "its code refuses visitors from this machine, by address, host name or their lack of a User-Agent: let them in "
    "where it is measured, by a variable of env_file"
)


def login(location: str | None) -> str:
    """The path of the login form that a redirect leads to, by its words; empty where it leads elsewhere."""
    path, _, query = (location or "").partition("?")
    return path if path.startswith("/") and (query or LOGS_IN.search(path)) else ""


def log_in(url: str) -> str:
    """What to do where pages need a login, whose form is there."""
    return LOGIN.format(file=FILE, url=url).replace("\n", " ")


def way_in(status: int, location: str | None) -> str:
    """What to do where a page that is there is not shown to the visitors of a measurement."""
    if url := login(location):
        return log_in(url)
    if status in REFUSED or LEAVES.match(location or ""):
        return LET_IN
    return f'name pages that visitors get: public = ["{location or "/..."}"] in [tool.benchapp] of {FILE}'


def require_page(project: UnderTest, its_rows: bool) -> None:
    """Raise BenchError when the project's health page, as it was looked at, will not answer 200.

    its_rows  it is served with the rows that it was looked at with, or a copy of them
    """
    pages = project.facts.pages if project.overlaid else ()
    page = next((page for page in pages if page.path == project.health), None)
    # What pages need may be there after `build` alone.
    as_served = its_rows and not (page and page.status >= 500 and project.description.build)
    if page and page.status != 200 and (page.location or as_served):
        _refuse(project, page)


def require(project: UnderTest, url: str, env: dict[str, str], identity: Identity) -> tuple[str, ...]:
    """Raise BenchError where the project's health page, rendered with the settings and the database that it will be
    served with, does not answer 200, or one of the pages that it names is an error.

    Each set of settings and database is asked once. Returns a note for each other page that a load may ask for in
    vain: its home page where that is an error or not for everybody, and one that it names as public and does not have.
    The kit's own site is not asked.
    """
    if not project.recorded:
        return ()
    question = ("health", url, tuple(sorted(env.items())))
    return project.once(question, lambda: _notes_on_pages(project, url, env, identity))


def _notes_on_pages(project: UnderTest, url: str, env: dict[str, str], identity: Identity) -> tuple[str, ...]:
    named = list(dict.fromkeys((project.health, project.ready, *project.description.public)))
    asked = ["renderpages", *dict.fromkeys((*named, HOME, UNKNOWN_PATH))]
    environment = {**commands.site_environment(project, url, project.var), **env}
    answer = commands.manage(project, asked, url, identity, env=environment)
    # What the project prints itself stands before.
    rendered = json.loads(answer.strip().rpartition("\n")[2])
    pages = [Page(path, it["status"], it.get("location"), error=it.get("error")) for path, it in rendered.items()]
    for page in pages:
        useless = page.status >= 500 or (page.path == project.health and (page.status != 200 or page.error))
        if page.path in named and useless:
            _refuse(project, page)
    notes: list[str] = []
    for page in pages:
        vain = page.status >= 500 or (page.path in named and page.status == 404)
        to_login = login(page.location) and not project.description.login
        hidden = to_login or LEAVES.match(page.location or "") or _refused(project, page)
        if vain or (hidden and page.path != UNKNOWN_PATH):
            more = "" if vain else f"; {way_in(page.status, page.location)}"
            notes.append(f"GET {page.path} {page.words}{more}")
    return tuple(notes)


def _refused(project: UnderTest, page: Page) -> bool:
    """Whether its code refuses a page that it has."""
    return page.status in REFUSED and (page.status != 404 or page.path in project.facts.urls)


def _refuse(project: UnderTest, page: Page) -> NoReturn:
    path = login(page.location) or (page.location if PLAIN.fullmatch(page.location or "") else "/...")
    remedy = f'name a page that answers 200: health = "{path}" in [tool.benchapp] of {FILE}'
    left = project.facts.migrations_left if project.overlaid and not project.description.generated else 0
    if page.status >= 500 and left and (not page.error or OF_DATABASE.match(page.error)):
        remedy = f"{left} migrations are not applied to its database: run ./manage.py migrate"
    elif page.error or _refused(project, page):
        remedy = f"{CORRECT if page.error else LET_IN}, or {remedy}"
    raise BenchError(f"{project.folder}: GET {page.path} {page.words}; {remedy}")
