"""The contents of the home page: ten lists and four single values, each one lazy query.

The template calls each list, and the single values, inside a {% cache %} tag: a part that Django has cached runs no
query. Every query reads a few rows of an index, whatever the size of the tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, datetime
from functools import cached_property

from django.db.models import QuerySet, Subquery
from django.urls import reverse
from django.utils import timezone

from benchapp.models import Author, Comment, Post
from benchapp.page_index import newer_rows
from benchapp.pagination import PER_PAGE, page_url, total

ARCHIVE_MONTHS = 6
LATEST = 5  # comments under "latest"
# Five-star comments and cities are searched among this many of the newest rows: a rare match stays cheap.
RECENT_COMMENTS = 2_000
RECENT_AUTHORS = 200


@dataclass(frozen=True)
class Month:
    """One line of the archive: a month, by the time of its newest post, and the list page with that post."""

    newest: datetime
    url: str


class Home:
    """The contents of one rendering of the home page."""

    # -- four single values ------------------------------------------------------------------------

    @cached_property
    def total_authors(self) -> int:
        return total(Author)

    @cached_property
    def total_posts(self) -> int:
        return total(Post)

    @cached_property
    def total_comments(self) -> int:
        return total(Comment)

    @cached_property
    def latest_comment_time(self) -> datetime | None:
        """When the newest comment was written; None on an empty site."""
        return Comment.objects.order_by("-id").values_list("created", flat=True).first()

    # -- ten lists ---------------------------------------------------------------------------------

    def recent_posts(self) -> QuerySet[Post]:
        return Post.objects.select_related("author").order_by("-id")[:5]

    def most_viewed(self) -> QuerySet[Post]:
        return Post.objects.only("title", "views").order_by("-views", "-id")[:6]

    def most_discussed(self) -> QuerySet[Post]:
        return Post.objects.only("title", "comment_count").order_by("-comment_count", "-id")[:6]

    def archive_pick(self) -> Post | None:
        """A post from the first third of the archive; changes with every third new post."""
        newest = Subquery(Post.objects.order_by("-id").values("id")[:1])
        return Post.objects.select_related("author").filter(id__gte=newest / 3).order_by("id").first()

    def archive_months(self) -> list[Month]:
        """Up to six months with posts, newest first, each by its newest post; empty on a site without comments."""
        if self.latest_comment_time is None:
            return []
        newest = Post.objects.order_by("-published", "-id").values("id")
        # It may be newer than the newest comment.
        ids = [Subquery(newest[:1])]
        for end in _month_ends(self.latest_comment_time, ARCHIVE_MONTHS):
            # Of a month without posts it is that of an earlier month, which is shown once.
            ids.append(Subquery(newest.filter(published__lt=end)[:1]))
        posts = Post.objects.order_by().filter(pk__in=ids).annotate(newer=newer_rows(Post))
        rows = sorted(posts.values_list("published", "newer"), reverse=True)[:ARCHIVE_MONTHS]
        return [Month(published, page_url(reverse("posts"), newer // PER_PAGE + 1)) for published, newer in rows]

    def busiest_authors(self) -> QuerySet[Author]:
        return Author.objects.only("name", "city", "post_count").order_by("-post_count", "-id")[:6]

    def newest_authors(self) -> QuerySet[Author]:
        return Author.objects.only("name", "city", "joined").order_by("-id")[:6]

    def cities(self) -> list[tuple[str, int]]:
        """Homes of the newest authors: up to eight cities, the most frequent first."""
        newest = Author.objects.order_by("-id").values_list("city", flat=True)[:RECENT_AUTHORS]
        return sorted(Counter(newest).items(), key=lambda item: (-item[1], item[0]))[:8]

    def latest_comments(self) -> QuerySet[Comment]:
        return _with_post(Comment.objects.order_by("-id"))[:LATEST]

    def five_stars(self) -> QuerySet[Comment]:
        """The newest comments with five stars, without the ones in `latest_comments`."""
        ids = Comment.objects.order_by("-id").values("id")
        shown, newest = Subquery(ids[LATEST - 1 : LATEST]), Subquery(ids[:1])
        comments = Comment.objects.filter(rating=5, id__lt=shown, id__gt=newest - RECENT_COMMENTS)
        return _with_post(comments.order_by("-id"))[:4]


def _with_post(comments: QuerySet[Comment]) -> QuerySet[Comment]:
    """Comments with the title of their post, not its long body."""
    return comments.select_related("post").defer("post__body")


def _month_ends(moment: datetime, count: int) -> Iterator[datetime]:
    """The ends of so many months, in the current time zone: of the month of `moment`, and of earlier months.

    Months outside of the years 1 to 9999, which no row can have, are left out.
    """
    this_month = timezone.localtime(moment).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    months = this_month.year * 12 + this_month.month - 1
    for number in range(months + 1, months + 1 - count, -1):
        year, month = divmod(number, 12)
        if MINYEAR <= year <= MAXYEAR:
            yield this_month.replace(year=year, month=month + 1)
