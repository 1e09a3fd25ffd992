"""What a page costs at the top and deep down a list, counted and with OFFSET.

Measures in process, with no web server and no template: the time from asking `benchapp.pagination` for a
page until its 25 rows are objects. The pages of a mode are read in rounds, in a new random order each
round, so that what disturbs the machine disturbs them all alike; the modes follow each other, since a
deep OFFSET drives everything else out of the processor's caches. The table shows medians, and each
median's ratio to that of page 1 of the same list in the same mode.
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
from django.db import DatabaseError

from bench.cli.options import count

MODES = ("counted", "offset")
DEPTHS = (0.0, 0.5, 0.95)
WARM_UP_ROUNDS = 3


@dataclass
class PageReads:
    """How long each reading of one page took."""

    mode: str
    listing: str
    page: int
    read: Callable[[int], object]
    times_ms: list[float] = field(default_factory=list)

    @property
    def median_ms(self) -> float:
        return statistics.median(self.times_ms)

    def take(self, seconds: float) -> None:
        """Read the page once more, unless it has had its share of time."""
        if sum(self.times_ms) > seconds * 1000:
            return
        start = time.perf_counter()
        self.read(self.page)
        self.times_ms.append((time.perf_counter() - start) * 1000)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.proofs.pagination", description=__doc__.splitlines()[0], allow_abbrev=False
    )
    parser.add_argument("--rows", type=count, default=1_020_000, help="rows to load, of all tables (1,020,000)")
    parser.add_argument(
        "--database",
        metavar="URL",
        help="the site's database to measure, filled with --rows if it is empty (a temporary SQLite file)",
    )
    parser.add_argument("--rounds", type=count, default=200, help="readings of each page (200)")
    parser.add_argument(
        "--seconds", type=float, default=10, help="no more readings of a page that took this long so far (10)"
    )
    return parser.parse_args(arguments)


def fill(rows: int) -> None:
    from benchapp.models import Author

    call_command("migrate", verbosity=0)
    if not Author.objects.exists():
        call_command("loadfixtures", rows=rows)


def listings() -> Iterator[tuple[str, Callable[[int], object]]]:
    from benchapp import pagination
    from benchapp.models import Author, Post

    yield "posts", pagination.page_of_posts
    yield "comments", pagination.page_of_comments
    busiest = Author.objects.order_by("-post_count").first()
    yield f"author's {busiest.post_count:,} posts", lambda n: pagination.page_of_author_posts(busiest, n)
    post = Post.objects.order_by("-comment_count").first()
    yield f"post's {post.comment_count:,} comments", lambda n: pagination.page_of_post_comments(post, n)


def measurements() -> list[PageReads]:
    return [
        PageReads(mode, name, max(1, round(read(1).num_pages * depth)), read)
        for name, read in listings()
        for mode in MODES
        for depth in DEPTHS
    ]


def measure(taken: list[PageReads], rounds: int, seconds: float) -> None:
    from django.test.utils import override_settings

    for mode in MODES:
        pages = [one for one in taken if one.mode == mode]
        with override_settings(BENCHAPP_PAGINATION=mode):
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
    from benchapp.models import Comment

    fill(rows)
    if not Comment.objects.exists():
        raise CommandError("the database has authors but no comments; choose one that is empty or filled")
    taken = measurements()
    measure(taken, rounds, seconds)
    from benchapp import pagination

    total = pagination.total_authors() + pagination.total_posts() + pagination.total_comments()
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
