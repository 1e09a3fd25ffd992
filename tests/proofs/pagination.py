"""The cost of a page at the top and deep down a list, counted and with OFFSET.

Measures in process, with no web server and no template: the time from a page's query until its 25 rows are objects.
The pages of a mode are read in rounds, in a new random order each round, so that what disturbs the machine disturbs
them all alike; the modes follow each other, since a deep OFFSET drives everything else out of the processor's caches.
The table shows medians, and each median's ratio to that of page 1 of the same list in the same mode.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.core.paginator import Page, Paginator
from django.db import DatabaseError

from tests.proofs.arguments import count

MODES = ("counted", "offset")
DEPTHS = (0.0, 0.5, 0.95)
WARM_UP_ROUNDS = 3


@dataclass
class PageReads:
    """The time of each reading of one page."""

    mode: str
    listing: str
    page: int
    read: Callable[[int], Page]
    times_ms: list[float] = field(default_factory=list)

    @property
    def median_ms(self) -> float:
        return statistics.median(self.times_ms)

    def take(self, seconds: float) -> None:
        """Read the page once more, unless it has had its share of time."""
        if sum(self.times_ms) > seconds * 1000:
            return
        start = time.perf_counter()
        list(self.read(self.page))
        self.times_ms.append((time.perf_counter() - start) * 1000)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.proofs.pagination", description=__doc__.splitlines()[0], allow_abbrev=False
    )
    parser.add_argument("--rows", type=count(), default=1_020_000, help="rows to load, of all tables (1,020,000)")
    parser.add_argument(
        "--database",
        metavar="URL",
        help="the site's database to measure, filled with --rows if it is empty (a temporary SQLite file)",
    )
    parser.add_argument("--rounds", type=count(), default=200, help="readings of each page (200)")
    parser.add_argument(
        "--seconds", type=float, default=10, help="no more readings of a page that took this long so far (10)"
    )
    return parser.parse_args(arguments)


def fill(rows: int) -> None:
    from benchapp.models import Author

    call_command("migrate", verbosity=0)
    if not Author.objects.exists():
        call_command("loadfixtures", rows=rows)


def listings() -> Iterator[tuple[str, str, Callable[[int], Page]]]:
    """Each list and mode, with what reads a page of it."""
    from benchapp.models import Author, Comment, Post
    from benchapp.pagination import PER_PAGE, ChildrenPaginator, TablePaginator

    author = Author.objects.order_by("-post_count").first()
    post = Post.objects.order_by("-comment_count").first()
    tables = {"posts": Post.objects.select_related("author"), "comments": Comment.objects.select_related("post")}
    for name, rows in tables.items():
        yield name, "counted", lambda n, rows=rows: TablePaginator(rows.all(), PER_PAGE).page(n)
        yield name, "offset", lambda n, rows=rows: Paginator(rows.all(), PER_PAGE).page(n)
    for name, rows, total in (
        (f"author's {author.post_count:,} posts", author.posts.order_by("-id"), author.post_count),
        (f"post's {post.comment_count:,} comments", post.comments.order_by("id"), post.comment_count),
    ):
        yield name, "counted", lambda n, rows=rows, total=total: ChildrenPaginator(rows.all(), PER_PAGE, total).page(n)
        yield name, "offset", lambda n, rows=rows: Paginator(rows.all(), PER_PAGE).page(n)


def measurements() -> list[PageReads]:
    return [
        PageReads(mode, name, max(1, round(read(1).paginator.num_pages * depth)), read)
        for name, mode, read in listings()
        for depth in DEPTHS
    ]


def measure(taken: list[PageReads], rounds: int, seconds: float) -> None:
    for mode in MODES:
        pages = [one for one in taken if one.mode == mode]
        for _ in range(WARM_UP_ROUNDS):
            for one in pages:
                one.take(seconds)
        for one in pages:
            del one.times_ms[:-1]  # the last one stays, in case a page takes longer than all its time
        for _ in range(rounds - 1):
            for one in random.sample(pages, len(pages)):
                one.take(seconds)


def table(taken: list[PageReads]) -> str:
    lines = [f"{'list':28} {'mode':8} {'page':>9} {'median ms':>10} {'times page 1':>12} {'readings':>9}"]
    first = {(one.listing, one.mode): one.median_ms for one in taken if one.page == 1}
    for one in taken:
        ratio = one.median_ms / first[one.listing, one.mode]
        lines.append(
            f"{one.listing:28} {one.mode:8} {one.page:9,} {one.median_ms:10.2f} {ratio:12.2f} {len(one.times_ms):9}"
        )
    return "\n".join(lines)


def run(rows: int, rounds: int, seconds: float) -> None:
    import django
    from django.db import connection

    django.setup()
    from benchapp import pagination
    from benchapp.models import Author, Comment, Post

    fill(rows)
    if not Comment.objects.exists():
        raise CommandError("the database has authors but no comments; choose one that is empty or filled")
    taken = measurements()
    measure(taken, rounds, seconds)
    total = sum(pagination.total(model) for model in (Author, Post, Comment))
    print(f"{connection.vendor}, {total:,} rows; a page of 25 rows as objects, in process, no template")
    print(table(taken))
    connection.close()


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    os.environ["DEBUG"] = "0"
    with tempfile.TemporaryDirectory(prefix="benchapp-pagination-") as directory:
        os.environ["DATABASE_URL"] = options.database or f"sqlite:///{Path(directory) / 'benchmark.sqlite3'}"
        try:
            run(options.rows, options.rounds, options.seconds)
        except (CommandError, DatabaseError, ImproperlyConfigured) as error:
            print(f"tests.proofs.pagination: {str(error).strip().splitlines()[0]}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
