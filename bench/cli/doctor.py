"""Find problems in a Django project before it is served, measured or deployed. Nothing in its folder changes."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace

import msgspec
from msgspec import structs

from bench import PROGRAM, paths
from bench.cli import options
from bench.errors import BenchError
from bench.printer import Printer, say
from bench.serve.catalog import catalog, values
from bench.serve.catalog.sizes import UNLIMITED
from bench.serve.deployment import deployment, workers
from bench.serve.deployment.case import Case, resolve
from bench.serve.project import description, findings, inspection
from bench.serve.project.description import Project
from bench.serve.project.findings.finding import ERROR, Examination, Finding
from bench.serve.project.health import UNKNOWN_PATH
from bench.serve.project.inspection import Facts
from bench.serve.project.opened import open_project, read_project
from bench.words import first_names, plural

# Of `--json`: 2 has findings in place of advice.
FORMAT = 2
WIDTH = 80
# Size of a screen if the terminal's is unknown.
SCREEN = (WIDTH, 40)
# Without a description, so many pages of URL patterns are looked at.
MAX_PATTERNS = 10
INDENT = "  "
DEEPER = "    "


OPTIONS = (
    replace(options.DATABASE, help="sqlite, postgresql or a URL (default: the database of its settings)"),
    *options.APPLIED,
    replace(options.PLAIN, help="find what the project lacks without benchapp's settings, too (render --plain)"),
    replace(options.ALL, help="all findings and pages, each with its documentation", group=options.RESULTS),
    options.LIST_FINDINGS,
    options.JSON,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `doctor`."""
    options.add(parser, OPTIONS)


def main(args: argparse.Namespace) -> int:
    """Print the findings; returns 1 if one of them is an error."""
    if args.list:
        _print_rules(args.json)
        return 0
    folder = options.project_folder(args)
    # A folder without a project is an error in one line; from here on the project's code runs, possibly slowly.
    description.read_description(folder or paths.KIT, args.config)
    print(f"looking at {options.demo_site(args) or folder}", file=sys.stderr, flush=True)
    project = read_project(folder, args.config)
    project = structs.replace(project, env={**project.env, **args.env})
    findings.require_ids(project)
    with Printer(sys.stderr) as printer, contextlib.ExitStack() as stack:
        printer.show("reading its settings, rendering pages, trying its database and caches")
        # A database made by setup is examined as served: filled.
        kits = args.database or project.description.generated
        url = ""
        if kits:
            url = stack.enter_context(_database(args, printer))
        patterns = MAX_PATTERNS
        if project.description.public:
            patterns = 0
        facts = inspection.inspect(project, patterns, closely=True, database=url, plain=args.plain)
    described = inspection.beginning_at(project.description, facts.start)
    project = structs.replace(project, description=described)
    names = catalog.read().value_set("bench").changed(args.set).names
    processes = names["processes"]
    if processes == values.AUTO:
        worker_mb = facts.worker_mb or workers.USUAL_WORKER_MB
        processes, _ = workers.fitting(UNLIMITED, worker_mb, names["threads"])
    unread = inspection.unread_variables(project) if args.plain else ()
    results = findings.examine(
        Examination(project, facts, processes, names["threads"], workers.memory_here_mb(), args.plain, unread)
    )
    if args.json:
        # The URL may hold a password.
        facts = structs.replace(facts, postgresql="")
        identity = {"folder": str(project.folder), "settings": project.settings, "python": str(project.python)}
        document = {"format": FORMAT, "project": identity, "facts": facts, "findings": results}
        say(msgspec.json.encode(document).decode())
    else:
        height = sys.maxsize
        if not args.all:
            height = shutil.get_terminal_size(SCREEN).lines
        for line in as_text(project, facts, results, height):
            say(line)
    return int(any(item.severity == ERROR for item in results))


def _database(args: argparse.Namespace, printer: Printer) -> contextlib.AbstractContextManager[str]:
    """The URL of the database of --database, brought up and filled if the kit's."""
    project = open_project(options.project_folder(args), args.config)
    chosen = options.database_of(args, project)
    if chosen.is_named:
        return contextlib.nullcontext(chosen.url)
    # Any stack will do: no server is started.
    for name in catalog.read().stacks:
        case = resolve(project, name, database=chosen)
        if isinstance(case, Case):
            return deployment.database_only(case, printer.show)
    raise BenchError(f"--database: no stack can run here; see {PROGRAM} list")


def as_text(project: Project, facts: Facts, findings: Sequence[Finding], height: int) -> list[str]:
    """The findings for people, errors first, within so many lines; only ids of findings without room.

    With room for all, each examined page has a line, and each finding its documentation.
    """
    full = height == sys.maxsize
    lines = _summary(project, facts)
    if full:
        lines += _pages(facts)
    shown = len(findings)
    ending = _ending(findings, shown)
    body = _in_groups(findings, full)
    while shown > 1 and len(lines) + len(body) + len(ending) > height:
        shown -= 1
        body, ending = _in_groups(findings[:shown], full), _ending(findings, shown)
    return [*lines, *body, *ending]


def _summary(project: Project, facts: Facts) -> list[str]:
    served = ", ".join(f"{kind} {name}" for kind, name in facts.application.items()) or "no application"
    what = f"settings {project.settings}, Django {facts.django} on Python {facts.python}, {served}"
    engines = ", ".join(engine.rpartition(".")[2] for engine in facts.databases.values()) or "none"
    pages = [page for page in facts.pages if page.path != UNKNOWN_PATH]
    others = [f"{page.path} ({page.status})" for page in pages if page.status != 200]
    rendered = plural(len(pages) - len(others), "page")
    looked_at = f"database {engines}; {rendered} of {len(pages)} rendered with status 200"
    if others:
        looked_at += f", but not {first_names(others)}"
    return [str(project.folder), *_filled(what, ""), *_filled(looked_at, "")]


def _pages(facts: Facts) -> list[str]:
    lines: list[str] = []
    for page in facts.pages:
        if page.path == UNKNOWN_PATH and page.status == 404:
            continue
        status = f"status {page.status}"
        if page.error:
            status += f" ({page.error})"
        rest = f"{plural(page.queries, 'database query', 'database queries')}, Vary: {page.vary or 'nothing'}"
        lines += _filled(f"GET {page.path}: {status}, {rest}", "")
    return lines


def _block(item: Finding, full: bool) -> list[str]:
    """The lines of one finding."""
    at = ""
    if item.where and item.where not in item.what:
        at = f" ({item.where})"
    lines = [*_filled(f"{item.id}: {item.what}{at}", INDENT), *_filled(f"-> {item.remedy}", DEEPER)]
    if full:
        return [*lines, f"{DEEPER}{_reachable(item.link)}"]
    return lines


def _reachable(link: str) -> str:
    """A link for readers in any folder: of a page of the kit the path in the clone, else the name."""
    if not link.startswith("docs/"):
        return link
    if paths.IS_CLONE:
        return str(paths.KIT / link)
    return f"benchapp's {link}"


def _in_groups(findings: Sequence[Finding], full: bool) -> list[str]:
    """The findings under a heading for each group."""
    lines: list[str] = []
    heading = ""
    for item in findings:
        of_item = f"{item.severity.upper()}S: {item.group}"
        if of_item != heading:
            heading = of_item
            lines += ["", heading]
        lines += _block(item, full)
    return lines


def _ending(findings: Sequence[Finding], shown: int) -> list[str]:
    """The ids of hidden findings, a line for each group, and their total."""
    if not findings:
        return ["", "nothing to change was found"]
    by_group: dict[str, list[str]] = {}
    for item in findings[shown:]:
        by_group.setdefault(item.group, []).append(item.id)
    lines = []
    if by_group:
        lines = ["", f"{len(findings) - shown} more (--all shows them):"]
    for group, ids in by_group.items():
        lines += _filled(f"{group}: {', '.join(dict.fromkeys(ids))}", INDENT)
    errors = sum(item.severity == ERROR for item in findings)
    return [*lines, "", f"{plural(errors, 'error')}, {plural(len(findings) - errors, 'warning')}"]


def _print_rules(as_json: bool) -> None:
    """Print all rules, group by group."""
    if as_json:
        rules = []
        for rule in findings.RULES:
            kind = {"id": rule.id, "severity": rule.severity, "group": rule.group, "found_in": rule.found_in}
            rules.append({**kind, "title": rule.title, "remedy": rule.remedy, "link": rule.link})
        say(msgspec.json.encode({"format": FORMAT, "findings": rules}).decode())
        return
    for group, about in findings.GROUPS.items():
        say(f"{group.upper()}: {about}")
        for rule in findings.RULES:
            if rule.group == group:
                say("\n".join(_filled(f"{rule.id} ({rule.severity}, {rule.found_in}): {rule.title}", INDENT)))
        say("")
    say('leave one out: ignore = ["id"] in [tool.benchapp] of pyproject.toml')


def _filled(line: str, indent: str) -> list[str]:
    after = f"{indent}  "
    if line.startswith("->"):
        after += " "
    return textwrap.wrap(
        line, WIDTH, initial_indent=indent, subsequent_indent=after, break_long_words=False, break_on_hyphens=False
    )
