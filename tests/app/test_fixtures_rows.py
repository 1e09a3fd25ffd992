"""The rows of the site as their generator makes them: the same for ever, and believable."""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
from collections import Counter
from datetime import UTC, date, datetime, time
from itertools import chain, pairwise

import pytest
from django.db import models

from benchapp.models import Author, Comment, Post
from fixtures import load, text
from fixtures.generator import ROWS_MAX, TABLES, Rows
from fixtures.stream import PROJECT, Stream, StreamError
from fixtures.text import VocabularyError, read
from fixtures.timeline import END, START

MODELS = {"author": Author, "post": Post, "comment": Comment}

# Of 1,000 rows of seed 1. A change of the rows changes these, and the changelog says so: databases that were
# filled before and after no longer have the same rows.
CHECKSUM = "3a4e6ae968f8641fea19b69625060c03da849ce4d097a5ac5a26f0ce23c75947"


PARSERS = {
    **dict.fromkeys(("name", "city", "bio", "title", "body"), lambda value: value.replace(r"\n", "\n")),
    "joined": date.fromisoformat,
    **dict.fromkeys(("published", "created"), lambda value: datetime.fromisoformat(value).replace(tzinfo=UTC)),
}


def parse(rows: Rows) -> dict[str, list[dict]]:
    """All rows by table, as {column: value}."""
    return {
        table: [
            {
                column: PARSERS.get(column, int)(value)
                for column, value in zip(TABLES[table], line.split("\t"), strict=True)
            }
            for line in chain.from_iterable(rows.blocks(table))
        ]
        for table in TABLES
    }


@pytest.fixture(scope="module")
def site() -> dict[str, list[dict]]:
    """All rows of a site of 20,400: 400 authors, 4,000 posts, 16,000 comments."""
    return parse(Rows(seed=5, total=20_400))


# --- How many -----------------------------------------------------------------------------------


def test_the_default_is_a_million_and_twenty_thousand_rows():
    assert Rows().counts == {"author": 20_000, "post": 200_000, "comment": 800_000}


@pytest.mark.parametrize("total", [100, 101, 127, 1000, 99_999, 1_020_001, ROWS_MAX])
def test_the_tables_scale_in_proportion_and_sum_up_exactly(total):
    counts = Rows(total=total).counts
    assert sum(counts.values()) == total
    for table, share in (("author", 1), ("post", 10), ("comment", 40)):
        assert abs(counts[table] - total * share / 51) <= 1


@pytest.mark.parametrize(
    ("seed", "total", "message"),
    [
        (1, 99, "the number of rows must be from 100 to 100,000,000, not 99"),
        (1, 100_000_001, "the number of rows must be from 100 to 100,000,000, not 100,000,001"),
        (-1, 1000, "the seed must be a whole number from 0 to 9223372036854775807, not -1"),
        (1 << 63, 1000, "the seed must be a whole number from 0 to 9223372036854775807, not 9223372036854775808"),
    ],
)
def test_what_is_out_of_range_is_refused(seed, total, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Rows(seed, total)


# --- Determinism --------------------------------------------------------------------------------


def test_the_rows_of_a_seed_are_the_same_for_ever():
    with Stream(Rows(seed=1, total=1000)) as stream:
        assert sum(frame.rows for frame in stream) == 1000
    assert stream.checksum == CHECKSUM


def test_another_seed_gives_other_rows():
    one, other = ({line for lines in Rows(seed, 1000).blocks("comment") for line in lines} for seed in (1, 2))
    assert not one & other


@pytest.mark.parametrize("total", [100, 131, 5000])
def test_every_table_has_the_rows_that_were_promised(total):
    rows = Rows(seed=3, total=total)
    for table, made in parse(rows).items():
        assert [each["id"] for each in made] == list(range(1, rows.counts[table] + 1))


def test_making_rows_needs_nothing_but_python():
    """The process that makes them runs without site-packages, so without Django."""
    code = "import fixtures.load, sys; sys.exit('django' in sys.modules or 'bench' in sys.modules)"
    subprocess.run([sys.executable, "-S", "-c", code], cwd=PROJECT, check=True)


# --- Whose it is --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parent", "child", "count"), [("author", "post", "post_count"), ("post", "comment", "comment_count")]
)
def test_counts_are_right(site, parent, child, count):
    seen = Counter(each[f"{parent}_id"] for each in site[child])
    assert {each["id"]: each[count] for each in site[parent]} == {each["id"]: seen[each["id"]] for each in site[parent]}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_few_posts_and_authors_are_busy(seed):
    rows = Rows(seed, 204_000)
    for popularity, half in ((rows.discussion, 0.05), (rows.authorship, 0.12)):
        shares = sorted(popularity.shares, reverse=True)
        mean = popularity.children / popularity.parents
        assert shares[0] > 40 * mean
        assert shares[0] < 0.02 * popularity.children + 20 * mean
        assert sum(shares[: int(half * len(shares))]) > 0.5 * popularity.children
        assert statistics.median(shares) < mean
        # A power law is a straight line when both axes are logarithmic: ten times the rank, an equal factor less.
        assert 2 < shares[len(shares) // 1000] / shares[len(shares) // 100] < 20
        assert 2 < shares[len(shares) // 100] / shares[len(shares) // 10] < 20


# --- When ---------------------------------------------------------------------------------------


def test_posts_and_comments_are_in_order_of_time(site):
    for table, column in (("post", "published"), ("comment", "created")):
        times = [each[column] for each in site[table]]
        assert all(one <= other for one, other in pairwise(times))
        assert datetime.combine(START, time(), UTC) <= times[0]
        assert times[-1] < datetime.combine(END, time(), UTC)


def test_a_site_lasts_twelve_years_whatever_its_size(site):
    for rows in (site, parse(Rows(1, 1000))):
        assert {rows["post"][-1]["published"].year, rows["comment"][-1]["created"].year} == {END.year - 1}
    assert END.year - START.year == 12
    by_year = Counter(each["created"].year for each in site["comment"])
    assert by_year[END.year - 1] > 2 * by_year[START.year] > 0


def test_nights_are_quiet(site):
    hours = Counter(each["created"].hour for each in site["comment"])
    assert hours[20] > 10 * hours[3]


@pytest.mark.parametrize("total", [100, 3000])
def test_nothing_is_older_than_what_it_belongs_to(total):
    for seed in range(4):
        authors, posts, comments = parse(Rows(seed, total)).values()
        for post in posts:
            assert authors[post["author_id"] - 1]["joined"] <= post["published"].date()
        for comment in comments:
            assert posts[comment["post_id"] - 1]["published"] <= comment["created"]


# --- What it says -------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES)
def test_values_fit_their_columns(site, table):
    for field in MODELS[table]._meta.concrete_fields:
        values = [each[field.column] for each in site[table]]
        if isinstance(field, models.CharField | models.TextField):
            assert all(isinstance(value, str) and value == value.strip() and value for value in values)
            assert max(map(len, values)) <= (field.max_length or 1000)
        elif isinstance(field, models.DateField):
            assert all(isinstance(value, date) for value in values)
        else:
            assert all(isinstance(value, int) and value >= 0 for value in values)


def test_the_columns_are_those_of_the_models():
    for table, model in MODELS.items():
        assert TABLES[table] == tuple(field.column for field in model._meta.concrete_fields)
        assert load.SITE[model._meta.db_table] == TABLES[table]


def test_texts_read_like_a_magazine(site):
    texts = [value for table in site.values() for each in table for value in each.values() if isinstance(value, str)]
    assert not [
        value for value in texts if re.search(r"[{}<>|\t\r\\]|  | [,.;]|[.!?] [a-zà-ÿ]|\b[Aa] (?!eu)[aeio]", value)
    ]
    posts, comments = ([each["body"] for each in site[table]] for table in ("post", "comment"))
    assert 400 <= statistics.mean(map(len, posts)) <= 700
    assert 80 <= statistics.mean(map(len, comments)) <= 160
    assert all(body.count("\n\n") == 2 and body.count("\n") == 4 for body in posts)
    assert all(body[0].isupper() and body[-1] in ".!?" for body in posts + comments)
    assert len(set(posts)) > 0.99 * len(posts)
    assert len(set(comments)) > 0.9 * len(comments)
    assert len({each["title"] for each in site["post"]}) > 800
    assert len({each["name"] for each in site["comment"]}) > 5000


def test_ratings_lean_to_the_good(site):
    ratings = Counter(each["rating"] for each in site["comment"])
    assert sorted(ratings) == [1, 2, 3, 4, 5]
    assert 3.5 < statistics.mean(ratings.elements()) < 4.2


def test_busy_posts_are_seen_more_often(site):
    posts = sorted(site["post"], key=lambda each: -each["comment_count"])
    busy, quiet = (statistics.median(each["views"] for each in part) for part in (posts[:40], posts[-2000:]))
    assert busy > 3 * quiet


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("first = [", "bad.toml: Invalid value (at end of document)"),
        ("last = ['x']", "bad.toml: the list 'first' is missing"),
        ("first = []", "bad.toml: 'first' must be a list of 1 to 256 texts"),
        ("first = 'Anna'", "bad.toml: 'first' must be a list of 1 to 256 texts"),
        ("first = ['Anna', ' ']", "bad.toml: 'first' has an unusable text: ' '"),
        (r'first = ["a\tb"]', r"bad.toml: 'first' has an unusable text: 'a\tb'"),
    ],
)
def test_a_bad_vocabulary_file_is_named(tmp_path, content, message):
    (tmp_path / "bad.toml").write_text(content)
    with pytest.raises(VocabularyError, match=f"^{re.escape(message)}$"):
        read(tmp_path / "bad.toml", ("first",))


def test_a_gap_without_words_is_named(tmp_path, monkeypatch):
    for path in text.VOCABULARY.glob("*.toml"):
        (tmp_path / path.name).write_text(path.read_text("utf-8").replace("See you on {day}.", "See you on {dya}."))
    monkeypatch.setattr(text, "VOCABULARY", tmp_path)
    with pytest.raises(VocabularyError, match=r"^words\.toml: no words for \{dya\}$"):
        _ = text.Texts().endings


# --- The stream ---------------------------------------------------------------------------------


def test_the_stream_ends_in_one_line_when_its_process_dies():
    with Stream(Rows(total=200_000)) as stream, pytest.raises(StreamError) as caught:
        for frame in stream:
            if frame.table == "post":
                stream._process.kill()
    assert str(caught.value) == "the process that makes the rows ended too early, with exit code -9"
    assert stream.checksum == ""


def test_the_process_ends_with_its_reader():
    with Stream(Rows(total=200_000)) as stream:
        next(iter(stream))
        process = stream._process
    assert process.returncode is not None
