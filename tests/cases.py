"""Cases of the kit's own site, for tests of what serves and measures them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from bench import paths
from bench.serve.catalog import catalog
from bench.serve.catalog.values import Values
from bench.serve.deployment import case as cases
from bench.serve.deployment import database
from bench.serve.deployment.case import Case
from bench.serve.deployment.database import NO_DATABASE
from bench.serve.project.opened import UnderTest, open_project


def kit() -> UnderTest:
    """The kit's own site as a project, read once for each folder in which the kit keeps its files."""
    return _kit(paths.STATE)


@cache
def _kit(var: Path) -> UnderTest:
    return open_project()


def resolved(stack: str, layer: str = "none", *, database_url: str | None = None, **how: Any) -> Case:
    """A case that can run here, as a command resolves it, on the database that `--database` names."""
    return cases.must_resolve(kit(), stack, layer, database=database.parse(kit(), database_url), **how)


def for_files(
    stack: str, layer: str = "none", values: str | Values = "bench", project: UnderTest | None = None
) -> Case:
    """A case whose files can be rendered, whether or not its programs are installed here."""
    chosen = catalog.read().value_set(values) if isinstance(values, str) else values
    return cases.for_files(project or kit(), stack, layer, chosen)


def production(
    stack: str, layer: str = "none", project: UnderTest | None = None, size: str = "unlimited", **changes: Any
) -> Case:
    """Like `for_files`, with the values of production, of which some are changed."""
    chosen = catalog.read().values["production"].changed(changes)
    return cases.for_files(project or kit(), stack, layer, chosen, size)


def bare(stack: Any, *layers: Any, **fields: Any) -> Case:
    """A case of a stack and layers that may be stand-ins, without programs and services."""
    known = catalog.read()
    case = Case(kit(), stack, layers, known.size("unlimited"), NO_DATABASE, known.values["bench"])
    return replace(case, **fields)
