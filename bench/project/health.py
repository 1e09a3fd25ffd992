"""Whether a project can say that it serves: the page that answers 200."""

from __future__ import annotations

from bench.errors import BenchError
from bench.project.description import FILE
from bench.project.under_test import UnderTest


def require(project: UnderTest, its_rows: bool) -> None:
    """Raise BenchError when the project's health page, as it was looked at, will not answer 200.

    its_rows  it is served with the rows that it was looked at with, or a copy of them
    """
    pages = project.facts.pages if project.overlaid else ()
    page = next((page for page in pages if page.path == project.health), None)
    if page is None or page.status == 200 or not (page.location or its_rows):
        return
    what = f"redirects to {page.location}" if page.location else page.status_words
    remedy = f'name a page that answers 200: health = "/..." in [tool.benchapp] of {FILE}'
    if page.status >= 500 and project.facts.migrations_left:
        left = f"{project.facts.migrations_left} migrations are not applied to its database"
        what = f"is answered with status {page.status}: {left}"
        remedy = "run ./manage.py migrate"
    raise BenchError(f"{project.folder}: GET {page.path} {what}; {remedy}")
