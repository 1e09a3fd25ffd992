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
from bench.project.under_test import UnderTest

HOME = "/"
# A page that raises an exception may lack rows or files alone.
CORRECT = "correct it, make what it needs by a command (setup, build in [tool.benchapp])"
OF_DATABASE = re.compile("OperationalError|ProgrammingError")


def require_page(project: UnderTest, its_rows: bool) -> None:
    """Raise BenchError when the project's health page, as it was looked at, will not answer 200.

    its_rows  it is served with the rows that it was looked at with, or a copy of them
    """
    pages = project.facts.pages if project.overlaid else ()
    page = next((page for page in pages if page.path == project.health), None)
    if page and page.status != 200 and (page.location or its_rows):
        _refuse(project, page)


def require(project: UnderTest, url: str, env: dict[str, str], identity: Identity) -> tuple[str, ...]:
    """Raise BenchError where the project's health page, rendered with the settings and the database that it will be
    served with, does not answer 200, or one of the pages that it names is an error.

    Each set of settings and database is asked once. Returns a note for each other page that a load may ask for in
    vain: its home page where that is an error, and one that it names as public and does not have. The kit's own site is
    not asked.
    """
    if not project.recorded:
        return ()
    question = ("health", url, tuple(sorted(env.items())))
    return project.once(question, lambda: _notes_on_pages(project, url, env, identity))


def _notes_on_pages(project: UnderTest, url: str, env: dict[str, str], identity: Identity) -> tuple[str, ...]:
    named = list(dict.fromkeys((project.health, project.ready, *project.description.public)))
    asked = ["renderpages", *dict.fromkeys((*named, HOME))]
    environment = {**commands.site_environment(project, url, project.var), **env}
    answer = commands.manage(project, asked, url, identity, env=environment)
    # What the project prints itself stands before.
    rendered = json.loads(answer.strip().rpartition("\n")[2])
    pages = [Page(path, it["status"], it.get("location"), error=it.get("error")) for path, it in rendered.items()]
    for page in pages:
        if page.path in named and (page.status >= 500 or (page.path == project.health and page.status != 200)):
            _refuse(project, page)
    vain = [page for page in pages if page.status >= 500 or (page.path in named and page.status == 404)]
    return tuple(f"GET {page.path} {page.words}" for page in vain)


def _refuse(project: UnderTest, page: Page) -> NoReturn:
    remedy = f'name a page that answers 200: health = "/..." in [tool.benchapp] of {FILE}'
    left = project.facts.migrations_left if project.overlaid and not project.description.generated else 0
    if page.status >= 500 and left and (not page.error or OF_DATABASE.match(page.error)):
        remedy = f"{left} migrations are not applied to its database: run ./manage.py migrate"
    elif page.error:
        remedy = f"{CORRECT}, or {remedy}"
    raise BenchError(f"{project.folder}: GET {page.path} {page.words}; {remedy}")
