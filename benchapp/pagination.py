"""Pages of the site's lists: numbered, honest and as cheap in the middle of ten million rows as at the top.

Django's own paginator counts the whole list for each page and reads every row before the page it shows
(`LIMIT 25 OFFSET 19000000`). A page can instead be read by key, "the 25 rows from id 812,345 down", which
an index answers at once; but that needs the key a page begins with, and with page numbers in the URL
nobody has told it. It cannot be computed either: ids have gaps where rows were deleted.

It can be looked up. The key of the n-th row is an order statistic, and a tree of counts finds it: the
database keeps, by triggers, how many rows each range of 256 keys holds, and each 256 of these ranges, and
so on (`benchapp.counted`). From the root, subtract the counts of the ranges above the wanted row (or below
it, if the end is nearer) until one contains it, and go on inside that one: at most 256 small rows at each
of two levels, the few of the top level, then at most 255 index entries in the last range. The top level's
sum is the length of the list, so the number of pages is exact, and each page holds exactly the rows that
counting and OFFSET would have shown, whatever was deleted or inserted in between. Children of one parent
(an author's posts, a post's comments) have trees of their own over `number`, their order of writing; the
parent's stored count is their total.

What it costs: three small updates, some tens of microseconds, on each insert and delete, which in PostgreSQL
make writers of the same table wait for each other until they commit. What it needs: list order must be
that of the counted key, so a list sorted or filtered otherwise would need a tree of its own.

`BENCHAPP_PAGINATION=offset` brings Django's paginator back, for comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core import paginator
from django.db import connections, router
from django.db.models import Model, QuerySet
from django.http import Http404

from benchapp import counted
from benchapp.models import Author, Comment, Post

PER_PAGE = 25

# No list is longer; also the largest number either database can be asked for.
LAST_POSITION = (1 << 63) - 1


@dataclass(frozen=True)
class Listing:
    """Rows in the order of a counted key."""

    tree: counted.Tree
    rows: QuerySet[Any]
    scope: int = 0  # the parent's id
    ascending: bool = False

    @property
    def ordered(self) -> QuerySet[Any]:
        return self.rows.order_by(self.tree.key if self.ascending else f"-{self.tree.key}")

    def starting_at(self, key: int) -> QuerySet[Any]:
        direction = "gte" if self.ascending else "lte"
        return self.ordered.filter(**{f"{self.tree.key}__{direction}": key})


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

    def __init__(self, listing: Listing) -> None:
        super().__init__(listing.ordered, PER_PAGE)

    def _get_page(self, object_list: Any, number: int, page_paginator: paginator.Paginator) -> Page:
        return Page(list(object_list), number, page_paginator)


class CountedPaginator(paginator.Paginator):
    """Pages read by key, the key looked up in the page index."""

    # A row deleted between the look-up's questions can leave its last one without an answer.
    ATTEMPTS = 3

    def __init__(self, listing: Listing) -> None:
        super().__init__(listing.ordered, PER_PAGE)
        self.listing = listing

    def page(self, number: Any) -> Page:
        position = self.position(number)
        listing = self.listing
        connection = connections[listing.rows.db]
        for _ in range(self.ATTEMPTS):
            self.count, key = counted.locate(connection, listing.tree, listing.scope, position, listing.ascending)
            self.__dict__.pop("num_pages", None)
            number = self.validate_number(number)
            if key is not None:
                return Page(list(listing.starting_at(key)[:PER_PAGE]), number, self)
            if self.count <= position:
                break
        return Page([], number, self)

    @staticmethod
    def position(number: Any) -> int:
        """How many rows come before a page."""
        try:
            position = (int(number) - 1) * PER_PAGE
        except (TypeError, ValueError):
            raise paginator.PageNotAnInteger("That page number is not an integer") from None
        if not 0 <= position <= LAST_POSITION:
            raise paginator.EmptyPage("That page contains no results")
        return position


def counting() -> bool:
    """Whether pages come from the page index, the default."""
    return getattr(settings, "BENCHAPP_PAGINATION", "counted") != "offset"


def page_of(listing: Listing, number: int) -> Page:
    """A page of a list, from 1; Http404 if the list has no such page."""
    pages = CountedPaginator(listing) if counting() else OffsetPaginator(listing)
    try:
        return pages.page(number)
    except paginator.InvalidPage as error:
        raise Http404(f"There is no page {number} of the {listing.tree.name}.") from error


def page_of_authors(number: int) -> Page:
    """Authors, the newest first."""
    return page_of(Listing(counted.AUTHORS, Author.objects.all()), number)


def page_of_posts(number: int) -> Page:
    """Posts with their authors, the newest first."""
    return page_of(Listing(counted.POSTS, Post.objects.select_related("author")), number)


def page_of_comments(number: int) -> Page:
    """Comments with their posts, the newest first."""
    return page_of(Listing(counted.COMMENTS, Comment.objects.select_related("post")), number)


def page_of_author_posts(author: Author, number: int) -> Page:
    """Posts of an author, the newest first; each has `author` itself as its author."""
    return page_of(Listing(counted.AUTHOR_POSTS, author.posts.all(), author.pk), number)


def page_of_post_comments(post: Post, number: int) -> Page:
    """Comments on a post, the oldest first; each has `post` itself as its post."""
    return page_of(Listing(counted.POST_COMMENTS, post.comments.all(), post.pk, ascending=True), number)


def total(tree: counted.Tree, model: type[Model]) -> int:
    """The length of a whole list: the page index's in a few rows, or with COUNT in mode "offset"."""
    if counting():
        return counted.total(connections[router.db_for_read(model)], tree)
    return model._default_manager.count()


def total_authors() -> int:
    return total(counted.AUTHORS, Author)


def total_posts() -> int:
    return total(counted.POSTS, Post)


def total_comments() -> int:
    return total(counted.COMMENTS, Comment)
