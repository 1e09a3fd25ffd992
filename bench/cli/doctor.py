"""Look at a Django project and say what will hurt when it is served and measured. It changes nothing there."""

from __future__ import annotations

import argparse
import contextlib
import textwrap

import msgspec
from msgspec import structs

from bench import PROGRAM
from bench.cli import options
from bench.errors import BenchError
from bench.printer import Printer, say
from bench.serve.catalog import catalog, values
from bench.serve.deployment import database, deployment
from bench.serve.deployment.case import Case, resolve
from bench.serve.project import doctor, inspection
from bench.serve.project.description import Project
from bench.serve.project.findings import Finding
from bench.serve.project.health import UNKNOWN_PATH
from bench.serve.project.inspection import Facts
from bench.serve.project.opened import read_project
from bench.words import plural

WIDTH = 80
# Without a description, so many pages of URL patterns are looked at.
MAX_PATTERNS = 10
INDENT = " " * 7


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `doctor`."""
    options.add_applied(parser, database=True)
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Print what was found; returns 1 when something blocks serving or measuring."""
    project = read_project(options.project_folder(args), args.config)
    project = structs.replace(project, env={**project.env, **values.environment(args.env)})
    with Printer() as printer, contextlib.ExitStack() as stack:
        printer.show(f"looking at {project.folder}")
        # A database that setup makes is looked at as it is served: filled.
        kits = args.database or project.description.generated
        url = stack.enter_context(_database(args, printer)) if kits else ""
        patterns = 0 if project.description.public else MAX_PATTERNS
        facts = inspection.inspect(project, patterns, closely=True, database=url)
    said = inspection.beginning_at(project.description, facts.start)
    project = structs.replace(project, description=said)
    names = catalog.read().value_set("bench").changed(values.parse_changes(args.set)).names
    advice = doctor.examine(project, facts, names["processes"], names["threads"])
    if args.json:
        # It may hold a password.
        facts = structs.replace(facts, postgresql="")
        identity = {"folder": str(project.folder), "settings": project.settings, "python": str(project.python)}
        say(msgspec.json.encode({"project": identity, "facts": facts, "advice": advice}).decode())
    else:
        _print(project, facts, advice)
    return 1 if any(item.level == "blocks" for item in advice) else 0


def _database(args: argparse.Namespace, printer: Printer) -> contextlib.AbstractContextManager[str]:
    """The URL of the database of --database, which is brought up and filled where it is one of the kit's."""
    project = options.project_of(args)
    chosen = database.parse(project, args.database)
    if chosen.given:
        return contextlib.nullcontext(chosen.url)
    # Which stack it is does not matter: none of its servers is started.
    found = (resolve(project, name, database=chosen) for name in catalog.read().stacks)
    case = next((case for case in found if isinstance(case, Case)), None)
    if case is None:
        raise BenchError(f"--database: no stack can run here; see {PROGRAM} list")
    return deployment.database_alone(case, printer.show)


def _print(project: Project, facts: Facts, advice: list[Finding]) -> None:
    served = ", ".join(f"{kind} {name}" for kind, name in facts.application.items()) or "no application"
    say(f"{project.folder}: settings {project.settings}, Django {facts.django} on Python {facts.python}, {served}")
    say(f"database: {', '.join(engine.rpartition('.')[2] for engine in facts.databases.values()) or 'none'}")
    for page in facts.pages:
        if page.path == UNKNOWN_PATH and page.status == 404:
            continue
        why = f" ({page.error})" if page.error else ""
        rest = f"{plural(page.queries, 'database query', 'database queries')}, Vary: {page.vary or 'nothing'}"
        say(_filled(f"GET {page.path}: status {page.status}{why}, {rest}"))
    for item in advice:
        say("")
        at = f" ({item.where})" if item.where and item.where not in item.what else ""
        for line in (f"{item.level:6} {item.name}: {item.what}{at}", f"{INDENT}{item.remedy}"):
            say(_filled(line))
        say(f"{INDENT}{item.link}")
    blocking = sum(item.level == "blocks" for item in advice)
    say(f"\n{blocking} block, {len(advice) - blocking} hurt" if advice else "\nnothing to change was found")


def _filled(line: str) -> str:
    return textwrap.fill(line, WIDTH, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False)
