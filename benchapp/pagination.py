"""Pages of the site's lists, numbered and exact.

Django's own paginator counts the whole list for each page and reads every row before the page it shows
(`LIMIT 25 OFFSET 19000000`). The three lists of whole tables (authors, posts, comments) need neither: the page
index (`benchapp.page_index`) has the length of the list and the id that a page begins with, so a page deep in
ten million rows costs about as much as the first. It needs the order of the list to be that of the ids; a list
sorted or filtered otherwise would need an index of its own.

The children of one parent (an author's posts, a post's comments) are few beside a whole table. The parent's
stored count spares the COUNT, and the OFFSET walks along the index on (parent, id) without reading the rows.

`BENCHAPP_PAGINATION=offset` uses Django's paginator everywhere, for comparison.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import paginator
from django.db import connections
from django.db.models import Model, QuerySet, Subquery
from django.http import Http404

from benchapp import page_index
from benchapp.models import Author, Comment, Post

PER_PAGE = 25

# No list is longer; also the largest number either database can be asked for.
LAST_POSITION = (1 << 63) - 1


class Page(paginator.Page):
    """Django's page, with the length of the list on it."""

    @property
    def count(self) -> int:
        """Rows in the whole list."""
        return self.paginator.count

    @property
    def num_pages(self) -> int:
        """Pages in the whole list: an empty one still has page 1."""
        return self.paginator.num_pages


class OffsetPaginator(paginator.Paginator):
    """Django's paginator: a COUNT and an OFFSET for each page."""

    def __init__(self, rows: QuerySet[Any]) -> None:
        super().__init__(rows, PER_PAGE)

    def _get_page(self, object_list: Any, number: int, page_paginator: paginator.Paginator) -> Page:
        return Page(list(object_list), number, page_paginator)


class ChildrenPaginator(OffsetPaginator):
    """The same with a known `count`, and an OFFSET over ids alone, which an index holds."""

    def __init__(self, rows: QuerySet[Any], count: int) -> None:
        super().__init__(rows)
        self.count = count

    def page(self, number: Any) -> Page:
        """A page; the first is read without looking for its ids."""
        number = self.validate_number(number)
        first = (number - 1) * PER_PAGE
        rows = self.object_list[:PER_PAGE]
        if first:
            rows = self.object_list.filter(pk__in=Subquery(self.object_list.values("pk")[first : first + PER_PAGE]))
        return self._get_page(rows, number, self)


class IndexPaginator(paginator.Paginator):
    """Pages of a whole table by descending id, found through the page index."""

    def __init__(self, rows: QuerySet[Any]) -> None:
        super().__init__(rows, PER_PAGE)

    def page(self, number: Any) -> Page:
        """A page, and with it the length of the list at this moment."""
        rows, model = self.object_list, self.object_list.model
        place = page_index.locate(connections[rows.db], model._meta.db_table, _position(number))
        self.count = place.total
        number = self.validate_number(number)
        if place.last_id is None:
            return Page([], number, self)
        # The id alone is looked for past the newer rows, then whole rows are read from there.
        ids = model._default_manager.order_by("-id").filter(id__lte=place.last_id).values("id")
        first = Subquery(ids[place.newer : place.newer + 1])
        return Page(list(rows.filter(id__lte=first)[:PER_PAGE]), number, self)


def _position(number: Any) -> int:
    """How many rows come before a page."""
    try:
        position = (int(number) - 1) * PER_PAGE
    except (TypeError, ValueError):
        raise paginator.PageNotAnInteger("That page number is not an integer") from None
    if not 0 <= position <= LAST_POSITION:
        raise paginator.EmptyPage("That page contains no results")
    return position


def _indexed() -> bool:
    """Whether the page index and the parents' stored counts are used, the default."""
    return getattr(settings, "BENCHAPP_PAGINATION", "counted") != "offset"


def _page(pages: paginator.Paginator, number: int, name: str) -> Page:
    """A page of a list, from 1; Http404 if the list has no such page."""
    try:
        return pages.page(number)
    except paginator.InvalidPage as error:
        raise Http404(f"There is no page {number} of the {name}.") from error


def _page_of_table(rows: QuerySet[Any], number: int, name: str) -> Page:
    paginator_class = IndexPaginator if _indexed() else OffsetPaginator
    return _page(paginator_class(rows.order_by("-id")), number, name)


def _page_of_children(rows: QuerySet[Any], stored_count: int, number: int, name: str) -> Page:
    return _page(ChildrenPaginator(rows, stored_count) if _indexed() else OffsetPaginator(rows), number, name)


def page_of_authors(number: int) -> Page:
    """Authors, the newest first."""
    return _page_of_table(Author.objects.all(), number, "authors")


def page_of_posts(number: int) -> Page:
    """Posts with their authors, the newest first."""
    return _page_of_table(Post.objects.select_related("author"), number, "posts")


def page_of_comments(number: int) -> Page:
    """Comments with their posts, the newest first."""
    return _page_of_table(Comment.objects.select_related("post"), number, "comments")


def page_of_author_posts(author: Author, number: int) -> Page:
    """Posts of an author, the newest first; each has `author` itself as its author."""
    return _page_of_children(author.posts.order_by("-id"), author.post_count, number, "posts of an author")


def page_of_post_comments(post: Post, number: int) -> Page:
    """Comments on a post, the oldest first; each has `post` itself as its post."""
    return _page_of_children(post.comments.order_by("id"), post.comment_count, number, "comments on a post")


def _total(model: type[Model]) -> int:
    """The length of a whole list: from the page index, or with COUNT in mode "offset"."""
    rows = model._default_manager.all()
    return page_index.total(connections[rows.db], model._meta.db_table) if _indexed() else rows.count()


def total_authors() -> int:
    return _total(Author)


def total_posts() -> int:
    return _total(Post)


def total_comments() -> int:
    return _total(Comment)
