"""All findings of `doctor`, errors first, then group by group, in the order of their definitions."""

from __future__ import annotations

from importlib import import_module
from itertools import chain

from bench.errors import BenchError, hint
from bench.serve.project.description import CHECK_ID, Project
from bench.serve.project.findings.finding import ERROR, GROUPS, PLAIN, Examination, Finding, Rule

__all__ = ["GROUPS", "RULES", "Examination", "examine", "require_ids"]

MODULES = [vars(import_module(f"{__name__}.{group}")).values() for group in GROUPS]
RULES = [item for item in chain.from_iterable(MODULES) if isinstance(item, Rule)]


def examine(examination: Examination) -> list[Finding]:
    """All findings for a project: errors first, then by group; of both, those of a plain host first.

    Raises BenchError if the project ignores an unknown finding.
    """
    description = examination.project.description
    require_ids(examination.project)
    findings: list[Finding] = []
    for rule in RULES:
        findings += rule.findings(examination)
    left_out = {*description.ignore, *description.allow}
    shown = [item for item in findings if item.id not in left_out]
    return sorted(shown, key=lambda item: (item.severity != ERROR, item.group != PLAIN))


def require_ids(project: Project) -> None:
    """Raise BenchError for an id in `ignore` that no finding, and no check of Django's, has."""
    known = [rule.id for rule in RULES]
    for name in project.description.ignore:
        if name not in known and not CHECK_ID.fullmatch(name):
            what = f"{project.described}: ignore names {name!r}, which is no finding"
            raise BenchError(f"{what}; {hint(name, known, 'list them: doctor --list; one is')}")
