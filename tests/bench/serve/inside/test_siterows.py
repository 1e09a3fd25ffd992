"""`manage.py siterows`: the instrument writes the number of rows into its results."""

from __future__ import annotations

import json
from io import StringIO

from django.core.management import call_command

from benchapp.models import Author, Comment, Post
from fixtures.rows import SEED_DEFAULT, Rows


def rows() -> dict[str, int]:
    out = StringIO()
    call_command("siterows", stdout=out)
    return json.loads(out.getvalue())


def test_it_counts_every_table(site_database: str) -> None:
    assert rows() == {"authors": 0, "posts": 0, "comments": 0, "seed": None}
    author = Author.objects.create(name="Ada", city="London")
    posts = [Post.objects.create(author=author, title="One", body="Text") for _ in range(2)]
    for _ in range(3):
        Comment.objects.create(post=posts[0], name="Bo", body="Yes", rating=4)
    assert rows() == {"authors": 1, "posts": 2, "comments": 3, "seed": None}
    posts[0].delete()
    assert rows() == {"authors": 1, "posts": 1, "comments": 0, "seed": None}


def test_it_knows_the_rows_of_the_default_seed(sqlite_site: str) -> None:
    first = [column[0] for column in next(Rows(SEED_DEFAULT, 3000).frames()).columns]
    Author.objects.create(**dict(zip(("id", "name", "city", "bio"), first, strict=False)))
    assert rows()["seed"] == SEED_DEFAULT
