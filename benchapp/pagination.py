"""Django's paginator with a count, and positions of pages, from the database.

Django counts the whole list for each page and reads every row before the page (`LIMIT 25 OFFSET 19000000`). The lists
of whole tables need neither: the page index (`benchapp.page_index`) has the length of the list and the id of each
page's first row, so a page deep in ten million rows costs about as much as the first. Such a list is in the order of
ids.

The children of one parent (an author's posts, a post's comments) are few beside a whole table. The parent's count
spares the COUNT, and the OFFSET walks along the index on (parent, id) without reading the rows.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.core.paginator import Page, Paginator
from django.db import connections
from django.db.models import Model, QuerySet, Subquery

from benchapp.page_index import Blocks

PER_PAGE = 25


class CountedPaginator(Paginator):
    """Pages of a list with a known `count`. A page that lacks promised rows is found as in Django's paginator."""

    def page(self, number: Any) -> Page:
        """A page by its number from 1; raises InvalidPage for a number out of range."""
        number = self.validate_number(number)
        first = (number - 1) * self.per_page
        rows = list(self.rows_from(first)[: self.per_page])
        if len(rows) == min(self.per_page, self.count - first):
            return self._get_page(rows, number, self)
        self.count = self.object_list.count()
        self.__dict__.pop("num_pages", None)
        return super().page(number)

    def rows_from(self, first: int) -> QuerySet[Any]:
        """The rows of the list after the `first` ones."""
        raise NotImplementedError


class TablePaginator(CountedPaginator):
    """Pages of a whole table, the newest ids first, by the page index."""

    @cached_property
    def blocks(self) -> Blocks:
        return Blocks(connections[self.object_list.db], self.object_list.model._meta.db_table)

    @cached_property
    def count(self) -> int:
        """The length of the whole list."""
        return self.blocks.total

    def rows_from(self, first: int) -> QuerySet[Any]:
        if (place := self.blocks.place(first)) is None:
            # The list is empty, nothing was counted, or rows have gone since the index was first read.
            return self.object_list[first:]
        last_id, newer = place
        # Skip the newer rows by id only, then read whole rows from there.
        ids = self.object_list.model._default_manager.order_by("-id").filter(id__lte=last_id).values("id")
        return self.object_list.filter(id__lte=Subquery(ids[newer : newer + 1]))


class ChildrenPaginator(CountedPaginator):
    """Pages of the children of one parent, which has their number."""

    def __init__(self, children: QuerySet[Any], per_page: int, count: int):
        super().__init__(children, per_page)
        self.count = count

    def rows_from(self, first: int) -> QuerySet[Any]:
        if first == 0:
            return self.object_list
        # An OFFSET over ids only, which an index holds.
        ids = self.object_list.values("pk")[first : first + self.per_page]
        return self.object_list.filter(pk__in=Subquery(ids))


def total(model: type[Model]) -> int:
    """The number of rows of a whole list."""
    return TablePaginator(model._default_manager.all(), PER_PAGE).count


def page_url(base: str, number: int) -> str:
    """The URL of page `number` of the list at `base`; the first page has the URL of the list."""
    return base if number == 1 else f"{base}page/{number}/"
