"""Random writes of every kind, in any order: the pages are those of stock pagination."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from benchapp import page_index
from benchapp.models import Author, Comment, Post
from tests.app.test_page_index import author, comments, post, set_sequences, sql

from .pages import every_page


class Writer:
    """Random writes of every kind, always possible ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.kinds: list[str] = []

    def one(self, model: type) -> Any:
        """A row, mostly one of the same few, so that some parents get many children; None where there is none."""
        keys = list(model.objects.order_by("id").values_list("pk", flat=True))
        return model.objects.get(pk=keys[min(int(self.random.expovariate(0.7)), len(keys) - 1)]) if keys else None

    def some(self, model: type) -> Any:
        keys = list(model.objects.order_by("id").values_list("pk", flat=True))
        return model.objects.filter(pk__in=self.random.sample(keys, min(len(keys), self.random.choice([1, 3, 40]))))

    def far(self, model: type, **fields: object) -> None:
        """A row that is the next one, or far from the last one."""
        top = model.objects.order_by("-id").values_list("id", flat=True).first() or 0
        model.objects.bulk_create([model(id=top + self.random.choice([1, 200, 65_000, 20_000_000]), **fields)])
        set_sequences()

    def new_posts(self) -> None:
        writers = [self.one(Author) for _ in range(3)]
        rows = range(self.random.choice([5, 400]))
        Post.objects.bulk_create([Post(author=self.random.choice(writers), title="t", body="b") for _ in rows])

    def new_comments(self) -> None:
        parents = [self.one(Post) for _ in range(3)]
        rows = [comments(self.random.choice(parents), 1)[0] for _ in range(self.random.choice([5, 700]))]
        Comment.objects.bulk_create(rows, batch_size=self.random.choice([None, 100]))

    def move_comments(self, write: Callable[[list[Comment]], object]) -> None:
        rows, parent = list(self.some(Comment)), self.one(Post)
        for row in rows:
            row.post = parent
        write(rows)

    def save_stale(self, model: type) -> None:
        row = self.one(model)
        post(self.one(Author))
        comments(self.one(Post), 1)[0].save()
        row.save()

    def roll_back(self) -> None:
        with transaction.atomic():
            self.new_comments()
            self.some(Post).delete()
            transaction.set_rollback(True)

    def write(self) -> str:
        if not Author.objects.exists():
            kind = "new author"
        elif not Post.objects.exists():
            kind = "new post"
        else:
            # Each once before any comes again.
            self.kinds = self.kinds or self.random.sample(list(WRITES), len(WRITES))
            kind = self.kinds.pop()
        WRITES[kind](self)
        return kind


def delete_range(writer: Writer) -> None:
    if row := writer.one(Comment):
        sql("DELETE FROM benchapp_comment WHERE id BETWEEN %s AND %s", row.pk, row.pk + 300)


WRITES: dict[str, Callable[[Writer], object]] = {
    "new author": lambda writer: author(str(writer.random.random())),
    "far author": lambda writer: writer.far(Author, name="Far", city="x"),
    "new post": lambda writer: post(writer.one(Author)),
    "new posts": Writer.new_posts,
    "new comment": lambda writer: comments(writer.one(Post), 1)[0].save(),
    "new comments": Writer.new_comments,
    "far comment": lambda writer: writer.far(Comment, post=writer.one(Post), name="n", body="b", rating=5),
    "delete posts": lambda writer: writer.some(Post).delete(),
    "delete comments": lambda writer: writer.some(Comment).delete(),
    "delete an author": lambda writer: Author.objects.count() > 3 and writer.one(Author).delete(),
    "delete a range": delete_range,
    "move posts": lambda writer: writer.some(Post).update(author=writer.one(Author)),
    "move comments": lambda writer: writer.some(Comment).update(post=writer.one(Post)),
    "move and save comments": lambda writer: writer.move_comments(lambda rows: [row.save() for row in rows]),
    "move comments in bulk": lambda writer: writer.move_comments(
        lambda rows: Comment.objects.bulk_update(rows, ["post"])
    ),
    "save a stale author": lambda writer: writer.save_stale(Author),
    "save a stale post": lambda writer: writer.save_stale(Post),
    "roll back": Writer.roll_back,
}


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.servers)])
def test_random_writes_keep_every_page_equal_to_stock_pagination(site_database, seed: int):
    writer = Writer(seed)
    for _ in range(3):
        WRITES["new author"](writer)
        writer.new_posts()
    Comment.objects.bulk_create(comments(writer.one(Post), 700))
    written = []
    for _ in range(60):
        written.append(writer.write())
        assert page_index.differences(connection) == [], f"after {written}"
        if len(written) % 6 == 0:
            for pages, expected in every_page():
                assert pages == expected, f"after {written}"
