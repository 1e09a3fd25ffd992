"""Access of the visitors of a measurement to the pages of a project, with remedies.

The pages are requested in process (`inspection`), and rendered again with the settings and the database of the
deployment before any server is started.
"""

from __future__ import annotations

import json
import re
from typing import Any

from bench.errors import BenchError
from bench.serve.machine.http import HEALTHY
from bench.serve.machine.identity import Identity
from bench.serve.project import commands, inspection
from bench.serve.project.description import FILE, HOME, Description
from bench.serve.project.inspection import HEALTH, Facts, InspectedPage
from bench.serve.project.opened import PLAIN, UnderTest
from bench.serve.project.run_command import IMPORT_TIMEOUT_S

# What no project has: its page for errors is rendered, too.
UNKNOWN_PATH = "/no/such/page/"
# No path for health checks: an admin or a tool responds there.
OF_A_TOOL = re.compile(r"/([\w-]*admin|__debug__)/")
PARAMETER = "<"
# A page that raises an exception may only lack rows or files.
CORRECT = "correct the page, or have a command make what is missing (setup or build in [tool.benchapp])"
# How an error names the command of manage.py that makes what the page needs.
COMMAND = re.compile(r"manage\.py (\w+)")
OF_DATABASE = re.compile("OperationalError|ProgrammingError")
LOGS_IN = re.compile(r"\b(log|sign)[-_]?in\b", re.I)
# How code refuses visitors that it does not expect, and a redirect to another host or to HTTPS.
REFUSED = (400, 401, 403, 404)
LEAVES = re.compile(r"https?://(?!127\.0\.0\.1[:/])")
LET_IN = (
    "its code refuses visitors from this machine, by address, host name or their lack of a User-Agent: let them in "
    "while it is measured, by a variable of env_file"
)
# For a service of this machine, and the command.
START = "start it, as by `{}`, or name another for measurements, by a variable of env_file"
NAME_PAGES = f'name pages that visitors get: public = ["{{}}"] in [tool.benchapp] of {FILE}'


def login(location: str | None) -> str:
    """The path of the login form behind a redirect, by its words; else empty."""
    path, _, query = (location or "").partition("?")
    if path.startswith("/") and (query or LOGS_IN.search(path)):
        return path
    return ""


def log_in(url: str) -> str:
    """The remedy if pages need a login and a login form exists."""
    return (
        f"describe the login, and measure pages that need none: in [tool.benchapp] of {FILE} public = [...], then "
        f'[tool.benchapp.login], url = "{url}", page = "/", proof = "{{name}}"'
    )


def way_in(status: int, location: str | None) -> str:
    """The remedy if a page exists but visitors of a measurement do not get it."""
    if url := login(location):
        return log_in(url)
    if status in REFUSED or LEAVES.match(location or ""):
        return LET_IN
    return NAME_PAGES.format(location or "/...")


def is_refused(facts: Facts, page: InspectedPage) -> bool:
    """True if the code refuses an existing page."""
    return page.status in REFUSED and (page.status != 404 or (page.path in facts.urls and facts.rows_as_served))


def unnamed(description: Description, facts: Facts) -> str:
    """A path for health checks of the project that nobody has named; else empty."""
    if HEALTH.search(description.health):
        return ""
    bad = [page.path for page in facts.pages if page.status not in HEALTHY]
    for url in facts.urls:
        if HEALTH.search(url) and not OF_A_TOOL.search(url) and url not in bad and PARAMETER not in url:
            return url
    return ""


def remedy(description: Description, facts: Facts, page: InspectedPage) -> str:
    """The remedy for a page of the description without status 200."""
    leads, to = {it.path: it.location for it in facts.pages}, page.location or ""
    while further := leads.pop(to.partition("?")[0], None):
        to = further
    form = login(to)
    otherwise = f"correct public in [tool.benchapp] of {FILE}"
    if page.path in (description.health, description.ready):
        other = unnamed(description, facts) or form
        if not other and PLAIN.fullmatch(to):
            other = to
        otherwise = f'name a page that returns status 200: health = "{other or "/..."}" in [tool.benchapp] of {FILE}'
    left = facts.migrations_left
    is_filled_by_kit = description.reads_environment or description.generated
    if page.status >= 500 and left and not is_filled_by_kit and (not page.error or OF_DATABASE.match(page.error)):
        return f"{left} migrations are not applied to its database: run ./manage.py migrate"
    first = ""
    if is_refused(facts, page):
        first = LET_IN
    if page.error:
        first = CORRECT
        named = COMMAND.search(page.error)
        if named and named[1] in facts.commands:
            first = f'make what it needs: build = ["{named[1]}"] in [tool.benchapp] of {FILE}'
    if form and form != page.path and not description.login:
        first = log_in(form)
    if first:
        return f"{first}, or {otherwise}"
    return otherwise


def require_page(project: UnderTest, its_rows: bool) -> None:
    """Raise BenchError if the project's health page, as inspected, will not return 2xx.

    its_rows  the deployment has the inspected rows, or a copy
    """
    if not project.overlaid:
        return
    for page in project.facts.pages:
        if page.path != project.health or page.status in HEALTHY:
            continue
        # Files that pages need may only exist after `build`.
        as_served = its_rows and not (page.status >= 500 and project.description.build)
        if page.location or as_served:
            raise _refusal(project, page)


def silent_caches(project: UnderTest) -> dict[str, str]:
    """A line with the remedy for each cache, `CACHES['default']`, in a server of this machine that does not respond."""
    problems: dict[str, str] = {}
    if not project.overlaid:
        # The caches of settings that read the kit's variables may be the kit's.
        return problems
    for name, command in project.facts.cache_servers.items():
        if why := project.facts.silent.get(name):
            what = name
            if name == project.facts.session_cache:
                what = f"{name} with the sessions"
            problems[name] = f"{what} does not respond: {why}; {START.format(command)}"
    return problems


def require_sessions(project: UnderTest) -> None:
    """Raise BenchError if the project's sessions are in a server of this machine that does not respond."""
    silent = silent_caches(project)
    if silent and project.facts.session_cache in silent:
        raise BenchError(f"{project.folder}: {silent[project.facts.session_cache]}")


def require(project: UnderTest, url: str, env: dict[str, str], identity: Identity) -> tuple[str, ...]:
    """Raise BenchError if the project's health page, rendered with the settings and the database of the deployment,
    does not return 2xx, or one of the named pages is an error.

    Each pair of settings and database is tried once. Returns a note for each other page that a load may request in
    vain: a home page that is an error or not for everybody, and a missing page that the description calls public. The
    kit's own site is not tried.
    """
    if not project.recorded:
        return ()
    question = ("health", url, tuple(sorted(env.items())))
    return project.once(question, lambda: _notes_on_pages(project, url, env, identity))


def _notes_on_pages(project: UnderTest, url: str, env: dict[str, str], identity: Identity) -> tuple[str, ...]:
    def render(*paths: str) -> dict[str, Any]:
        command = ["renderpages", *dict.fromkeys(paths), f"--timeout={inspection.PAGE_TIMEOUT_S:g}"]
        environment = {**commands.site_environment(project, url), **env}
        response = commands.manage(project, command, environment, identity, timeout_s=IMPORT_TIMEOUT_S)
        # What the project prints itself stands before.
        pages: dict[str, Any] = json.loads(response.strip().rpartition("\n")[2])
        return pages

    rendered = render(*_named(project), HOME, UNKNOWN_PATH)
    if not project.facts.rows_as_served and rendered[HOME]["status"] != 200:
        # Only with the rows of now it shows at which page visitors begin.
        project.begin_at(inspection.inspect(project.project, database=url).start)
        rendered = render(*_named(project), HOME, UNKNOWN_PATH)

    named = _named(project)
    notes = list(silent_caches(project).values())
    for path, it in rendered.items():
        page = InspectedPage(path, it["status"], it.get("location"), error=it.get("error"))
        wrong = page.path == project.health and (page.status not in HEALTHY or page.error)
        if path in named and (page.status >= 500 or wrong):
            raise _refusal(project, page)
        vain = page.status >= 500 or (path in named and page.status == 404)
        to_login = login(page.location) and not project.description.login
        hidden = to_login or LEAVES.match(page.location or "") or is_refused(project.facts, page)
        if vain or (hidden and path != UNKNOWN_PATH):
            note = f"GET {path} {page.words}"
            if not vain:
                note += f"; {way_in(page.status, page.location)}"
            notes.append(note)
    return tuple(notes)


def _named(project: UnderTest) -> list[str]:
    """The paths of health checks and of public pages."""
    return list(dict.fromkeys((project.health, project.ready, *project.description.public)))


def _refusal(project: UnderTest, page: InspectedPage) -> BenchError:
    what = f"{project.folder}: GET {page.path} {page.words}"
    if page.status == 404 and project.facts.start is None:
        what += ", and no URL pattern without parameters shows a page to visitors without an account"
    return BenchError(f"{what}; {remedy(project.description, project.facts, page)}")
