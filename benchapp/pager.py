"""Links from one page of a list to the others, as templates/pager.html shows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

NEIGHBOURS = 2


class NumberedPage(Protocol):
    """The part of a page of `benchapp.pagination` that links need."""

    number: int
    num_pages: int


@dataclass(frozen=True)
class Pager:
    """The pages around `page` of the list that begins at the URL `base`; `anchor` is a fragment such as #posts."""

    page: NumberedPage
    base: str
    anchor: str = ""

    def url(self, number: int) -> str:
        """The URL of a page; the first page has the URL of the list."""
        return page_url(self.base, number) + self.anchor

    @property
    def first(self) -> str:
        return self.url(1)

    @property
    def previous(self) -> str | None:
        return self.url(self.page.number - 1) if self.page.number > 1 else None

    @property
    def next(self) -> str | None:
        return self.url(self.page.number + 1) if self.page.number < self.page.num_pages else None

    @property
    def last(self) -> str:
        return self.url(self.page.num_pages)

    @property
    def jump(self) -> str:
        """The URL of the form that asks for a page number."""
        return f"{self.base}jump/"

    def neighbours(self) -> Iterator[tuple[int, str, bool]]:
        """A few page numbers around this one, each with its URL and whether a narrow screen hides it."""
        nearest = max(1, self.page.number - NEIGHBOURS)
        farthest = min(self.page.num_pages, self.page.number + NEIGHBOURS)
        for number in range(nearest, farthest + 1):
            yield number, self.url(number), abs(number - self.page.number) == NEIGHBOURS


def page_url(base: str, number: int) -> str:
    """The URL of page `number` of the list at `base`."""
    return base if number == 1 else f"{base}page/{number}/"
