"""Findings: versions, health checks, and Django's own checks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bench.serve.machine.http import HEALTHY
from bench.serve.project.description import FILE
from bench.serve.project.findings.finding import DOCS, RENDER, WARNING, Examination, Occurrence, finding
from bench.serve.project.health import unnamed
from bench.words import plural

PROBES = "https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/"
PRE_RELEASE = re.compile(r"(\d+\.\d+)(a|b|rc|\.dev)\d+")
# The last release with a fix of security in each branch that gets some, on 25 November 2026.
# https://www.djangoproject.com/download/
SECURE = {"5.2": 19, "6.0": 10, "6.1": 3}


@finding("django-version", WARNING, "", link="https://www.djangoproject.com/download/#supported-versions")
def django_version(examination: Examination) -> Iterator[Occurrence]:
    """This version of Django has known holes, or gets no fixes any more."""
    version = examination.facts.django
    if early := PRE_RELEASE.match(version):
        remedy = "serve a release in production"
        if early[1] in SECURE:
            remedy = f"upgrade to {early[1]}.{SECURE[early[1]]} or newer"
        yield Occurrence(f"{version} is a pre-release, which gets no security fixes", remedy=remedy)
        return
    branch, _, patch = version.rpartition(".")
    if version.count(".") < 2:
        branch, patch = version, "0"
    last = SECURE.get(branch)
    is_newer_branch = last is None and _numbers(branch) > max(map(_numbers, SECURE))
    if not patch.isdecimal() or is_newer_branch or (last is not None and int(patch) >= last):
        return
    if last is None:
        oldest = min(SECURE, key=_numbers)
        yield Occurrence(
            f"{branch} no longer receives security fixes", remedy=f"upgrade to {oldest}.{SECURE[oldest]} or newer"
        )
    else:
        yield Occurrence(
            f"{version} is below {branch}.{last}, with known holes", remedy=f"upgrade to {branch}.{last} or newer"
        )


def _numbers(branch: str) -> tuple[int, ...]:
    return tuple(int(part) for part in branch.split(".") if part.isdecimal())


@finding("health-check-cost", WARNING, "", link=PROBES, found_in=RENDER)
def health_check_cost(examination: Examination) -> Iterator[Occurrence]:
    """Health checks render a page or query the database."""
    description = examination.project.description
    for page in examination.pages:
        is_page = page.path in ("/", *description.public)
        if page.path != description.health or page.status not in HEALTHY or not (is_page or page.queries):
            continue
        cost = "renders a page"
        if page.queries:
            cost = f"takes {plural(page.queries, 'database query', 'database queries')}"
        step, path = "name it", unnamed(description, examination.facts)
        if not path:
            step, path = "give health checks a URL that needs no database", "/health/"
        yield Occurrence(
            f"GET {page.path}, which health checks request, {cost}",
            remedy=f'{step}: health = "{path}" in [tool.benchapp] of {FILE}; it is served whatever host a load '
            "balancer names",
        )


@finding("django-check", WARNING, "see ./manage.py check --deploy", link=f"{DOCS}/ref/checks/")
def django_check(examination: Examination) -> Iterator[Occurrence]:
    """Django's own checks, except those of security (each has its own id, such as models.W042)."""
    for item in examination.django_checks():
        if not item.id.startswith("security."):
            yield item
