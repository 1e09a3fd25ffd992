"""Differences between the pages of a project at several commits.

Each commit renders its pages in process, without a server, on rows migrated from the same original. Parts that differ
between renderings, such as a time of day, are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import msgspec

from bench.errors import BenchError
from bench.measure.run import workload
from bench.serve.deployment.case import Case
from bench.serve.deployment.deployment import database_only
from bench.serve.project import commands
from bench.serve.project.opened import UnderTest
from bench.verify.in_process import ExpectedPage, expected_page

# Pages that are rendered of each workload.
MOST = 20


def differences(cases: Sequence[Case], workloads: Sequence[str], show: Callable[[str], None]) -> dict[str, list[str]]:
    """Label of a commit -> a line for each page of these workloads that differs from the first commit's.

    Each case is another commit. Raises BenchError if a commit cannot render the pages.
    """
    rendered = {}
    for case in cases:
        show(f"rendering the pages of {case.stack.ref}")
        rendered[case.stack.ref] = _rendered(case, _paths(case.project, workloads))
    first, *others = rendered
    lines: dict[str, list[str]] = {}
    for other in others:
        for path, page in rendered[first].items():
            if texts := _difference(page, rendered[other].get(path)):
                line = f"{path} differs: {first} has {texts[0]!r}, {other} has {texts[1]!r}"
                lines.setdefault(other, []).append(line)
    return lines


def _paths(project: UnderTest, workloads: Sequence[str]) -> list[str]:
    """The pages that visitors of a workload request by path."""
    known = workload.workloads(project)
    steps = chain.from_iterable(known[name].steps for name in workloads)
    paths = [step for step in steps if step.startswith("/")]
    return list(dict.fromkeys(paths or project.description.first_pages))[:MOST]


def _rendered(case: Case, paths: Sequence[str]) -> Mapping[str, ExpectedPage]:
    project, identity = case.project, case.project.worker()
    commands.make_files(project, identity)
    # Names of static files are in pages.
    commands.collect_static(project, identity)
    with database_only(case) as url:
        printed = commands.manage(project, ["renderpages", *paths], commands.site_environment(project, url), identity)
    try:
        # The project's own output comes first.
        pages = msgspec.json.decode(printed.strip().rpartition("\n")[2])
    except msgspec.DecodeError:
        raise BenchError(f"ref={case.stack.ref}: manage.py renderpages printed no JSON") from None
    return {path: expected_page(path, pages) for path in paths}


def _difference(page: ExpectedPage, other: ExpectedPage | None) -> tuple[str, str] | None:
    """The texts of two renderings at their first difference; None if equal."""
    if other is None:
        return f"status {page.status}", "no page"
    if page.status != other.status:
        return f"status {page.status}", f"status {other.status}"
    for body in (other.body, *other.again):
        if difference := page.difference(body):
            return difference
    return None
