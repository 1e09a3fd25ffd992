"""The rows of the site as their generator makes them: the same for ever, and believable."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime
from itertools import pairwise

import pytest
from django.db import models

from benchapp.models import Author, Comment, Post
from fixtures.rows import END, ROWS_MAX, START, TABLES, Rows
from tests.app.loading import generated

MODELS = {"author": Author, "post": Post, "comment": Comment}
# Of 1,000 rows of seed 1. A change of the rows changes it, and the changelog says so: databases that were filled before
# and after no longer have the same rows.
CHECKSUM = "db8eb86774ca4cde228bd3e7f2055702a27c75f58adf77aabf9de6d339524388"


def columns(rows: int, seed: int = 1) -> dict[str, dict[str, list]]:
    """Every column's values by table, numbers and times as such."""
    parsers = {
        **dict.fromkeys(("name", "city", "bio", "title", "body"), str),
        "joined": date.fromisoformat,
        **dict.fromkeys(("published", "created"), datetime.fromisoformat),
    }
    return {
        table: {
            name: list(map(parsers.get(name, int), values))
            for name, values in zip(TABLES[table], zip(*lines, strict=True), strict=True)
        }
        for table, lines in generated(rows, seed).items()
    }


@pytest.fixture(scope="module")
def site() -> dict[str, dict[str, list]]:
    """All rows of a site of 20,400: 400 authors, 4,000 posts, 16,000 comments."""
    return columns(20_400, seed=5)


@pytest.mark.parametrize("total", [100, 101, 1000, 9999, 1_020_000, ROWS_MAX])
def test_the_tables_scale_in_proportion_and_sum_up_exactly(total):
    authors, posts, comments = Rows(total=total).counts.values()
    assert authors + posts + comments == total
    assert posts == pytest.approx(10 * authors, rel=0.1) and comments == pytest.approx(40 * authors, rel=0.1)


@pytest.mark.parametrize(("seed", "total"), [(-1, 1000), (2**63, 1000), (1, 99), (1, ROWS_MAX + 1)])
def test_what_is_out_of_range_is_refused(seed, total):
    with pytest.raises(ValueError, match="must be"):
        Rows(seed, total)


def test_the_rows_of_a_seed_are_the_same_for_ever():
    rows = Rows(1, 1000)
    assert sum(frame.rows for frame in rows.frames()) == 1000
    assert rows.checksum == CHECKSUM
    assert generated(1000, seed=2) != generated(1000)


@pytest.mark.parametrize(("parent", "child", "count"), [("author", "post", "post"), ("post", "comment", "comment")])
def test_counts_are_right(site, parent, child, count):
    seen = Counter(site[child][f"{parent}_id"])
    assert site[parent][f"{count}_count"] == [seen[key] for key in site[parent]["id"]]


@pytest.mark.parametrize(("total", "seed"), [(100, 0), (100, 1), (3000, 2), (20_400, 5)])
def test_nothing_is_older_than_what_it_belongs_to(total, seed):
    site = columns(total, seed)
    authors, posts, comments = site["author"]["joined"], site["post"]["published"], site["comment"]["created"]
    for author, published in zip(site["post"]["author_id"], posts, strict=True):
        assert authors[author - 1] <= published.date()
    for post, created in zip(site["comment"]["post_id"], comments, strict=True):
        assert posts[post - 1] <= created
    for times in (posts, comments):
        assert all(one <= other for one, other in pairwise(times))
        assert times[0].date() >= START and times[-1].date() < END
        assert times[-1].year == END.year - 1


@pytest.mark.parametrize("table", TABLES)
def test_values_fit_their_columns(site, table):
    for name in TABLES[table]:
        field = next(field for field in MODELS[table]._meta.concrete_fields if field.column == name)
        values = site[table][name]
        if isinstance(field, models.CharField | models.TextField):
            assert all(value == value.strip() and value for value in values)
            assert max(map(len, values)) <= (field.max_length or 1000)
        elif not isinstance(field, models.DateField):
            assert min(values) >= 0
