"""The definition of a finding: one rule, one function.

A rule takes an Examination and yields an Occurrence for each place of the problem in a project. To add one, write the
function in a module of this package, which is its group, under `@finding("its-id", ...)`; the docstring is the title.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import msgspec

from bench.serve.project.description import Project
from bench.serve.project.findings.code import first_lines
from bench.serve.project.health import OF_DATABASE
from bench.serve.project.inspection import DeploymentCheck, Facts, InspectedPage
from bench.serve.project.sqlite_snapshot import has_content

DOCS = "https://docs.djangoproject.com/en/stable"
SETTINGS_DOCS = f"{DOCS}/ref/settings/#"
# Pages of this project: what a description says, what a cache leaves out, and a host without benchapp's settings.
DESCRIPTION_DOCS = "docs/your-own-project.md#describe-it"
SERVED_DOCS = "docs/your-own-project.md#how-it-is-served"
PRIVATE_DOCS = "docs/caching.md#what-is-never-cached"
PLAIN_DOCS = "docs/production.md#what-benchapp-adds-to-your-project"
Severity = Literal["error", "warning"]
# An error keeps the project from being served or measured; a warning costs its visitors, figures or operators.
ERROR: Severity = "error"
WARNING: Severity = "warning"
# The passes of `doctor`: settings, code and URL configuration are read; then pages are rendered, and the database,
# caches and storages are used.
READ, RENDER = PASSES = ("read", "render")
# The group of findings for --plain only.
PLAIN = "plain"
# The groups, worst first, each a module of this package.
GROUPS = {
    "serving": "problems that keep the site, or a page of it, from being served",
    "security": "ways for others to see or do what they may not",
    "data": "the database, its connections and migrations",
    "services": "mail, channel layers and caches that the site uses",
    "files": "static files, uploads and logs",
    "caching": "pages that no cache stores, and costs of each request",
    "upkeep": "versions, health checks, and Django's own checks",
    PLAIN: "lacks on a host without benchapp's settings: `doctor --plain` only",
}


@dataclass(frozen=True)
class Examination:
    """A project with its facts, served by so many processes of so many threads.

    memory_mb  MiB of memory that the processes may use together
    plain      whether the host is to run the project's own settings module
    unread     variables of a host's files that the settings do not read; only for a plain one
    """

    project: Project
    facts: Facts
    processes: int
    threads: int
    memory_mb: float = math.inf
    plain: bool = False
    unread: tuple[str, ...] = ()

    @property
    def own_settings(self) -> bool:
        """True if the settings take hosts, caches and connections from the kit's variables."""
        return self.project.description.reads_environment

    @property
    def django_version(self) -> tuple[int, ...]:
        """The version of Django, `(5, 2)`."""
        return tuple(int(part) for part in re.findall(r"\d+", self.facts.django)[:2])

    @functools.cached_property
    def is_unfilled(self) -> bool:
        """True if the database has no tables yet, and the kit fills it: a missing or empty file, or one in memory."""
        source = self.facts.database_files.get("default")
        no_file = "default" in self.facts.databases_in_memory or (source is not None and not has_content(source))
        filled_by_kit = self.project.description.generated or no_file
        return filled_by_kit and bool(self.facts.migrations_left)

    @functools.cached_property
    def pages(self) -> tuple[InspectedPage, ...]:
        """The inspected pages, except errors that unapplied migrations may have caused."""
        if not self.facts.migrations_left:
            return self.facts.pages
        reliable_pages = []
        for page in self.facts.pages:
            # An empty database may be the cause of any error after a query.
            lacks_rows = self.is_unfilled and (page.queries or not page.error)
            if page.status < 500 or not (lacks_rows or OF_DATABASE.match(page.error or "")):
                reliable_pages.append(page)
        return tuple(reliable_pages)

    @functools.cached_property
    def code(self) -> dict[str, str]:
        """The first line of code that needs a server or service, by a name of code.PATTERNS."""
        return first_lines(self.project)

    def django_checks(self) -> Iterator[Occurrence]:
        """The messages of Django's checks, one per id, with the line of the setting in question."""
        by_id: dict[str, list[DeploymentCheck]] = {}
        for check in self.facts.checks:
            by_id.setdefault(check.id, []).append(check)
        for name, (first, *others) in sorted(by_id.items()):
            lines = filter(None, map(self.line, re.findall("[A-Z_]+", first.text)))
            sentence = first.text.splitlines()[0].split(". ")[0].rstrip(".")
            if others:
                sentence += f", and {len(others)} more"
            yield Occurrence(sentence, first.where or next(lines, ""), " ".join(first.hint.split()), name)

    def line(self, setting: str, word: str = "") -> str:
        """The line that sets a setting, among lines with the word; empty if unknown."""
        statements = self.facts.statements.get(setting, ())
        for statement in reversed(statements):
            for number, text in enumerate(self.source(statement.file)[statement.line - 1 : statement.end]):
                if word and word in text:
                    return f"{statement.file}:{statement.line + number}"
        if not statements:
            return ""
        return str(statements[-1])

    def source(self, file: str) -> list[str]:
        """The lines of a file of the project; empty if unreadable."""
        try:
            return (self.project.folder / file).read_text("utf-8", "replace").splitlines()
        except OSError:
            return []

    def only_in_debug(self, setting: str) -> bool:
        """True if the project sets this value only while DEBUG is on, as here."""
        statements = self.facts.statements.get(setting, ())
        return self.facts.debug and bool(statements) and statements[-1].in_debug


@dataclass(frozen=True)
class Occurrence:
    """A place of a problem in a project.

    what    the problem there, in a sentence
    where   file and line; when empty, the line of the rule's setting, if any
    remedy  the next step, if other than the rule's
    id      the identifier, if others gave one
    """

    what: str
    where: str = ""
    remedy: str = ""
    id: str = ""


class Finding(msgspec.Struct, frozen=True):
    """A problem of a project: id, severity and group of the rule, what and where, the next step, and documentation."""

    id: str
    severity: Severity
    group: str
    what: str
    where: str
    remedy: str
    link: str


RuleFunction = Callable[[Examination], Iterable[Occurrence]]


@dataclass(frozen=True)
class Rule:
    """One rule.

    title     the problem, in a sentence
    remedy    the next step; an occurrence may have another
    found_in  one of PASSES
    setting   the setting of Django to change, or empty
    """

    id: str
    severity: Severity
    group: str
    title: str
    remedy: str
    link: str
    found_in: str
    setting: str
    occurrences: RuleFunction

    def findings(self, examination: Examination) -> Iterator[Finding]:
        """All findings of this rule in a project."""
        for item in self.occurrences(examination):
            where = item.where or examination.line(self.setting)
            remedy = item.remedy or self.remedy
            yield Finding(item.id or self.id, self.severity, self.group, item.what, where, remedy, self.link)


def finding(
    id: str, severity: Severity, remedy: str, *, link: str = "", found_in: str = READ, setting: str = ""
) -> Callable[[RuleFunction], Rule]:
    """Make a Rule of a function, whose docstring is the title.

    link  the URL of a page, or a page of this project; by default Django's of the setting
    """
    link = link or SETTINGS_DOCS + setting.lower().replace("_", "-")

    def define(occurrences: RuleFunction) -> Rule:
        title = " ".join((occurrences.__doc__ or "").split())
        group = occurrences.__module__.rpartition(".")[2]
        return Rule(id, severity, group, title, remedy, link, found_in, setting, occurrences)

    return define
