"""Random writes of every kind, in any order: the pages are those of stock pagination."""

from __future__ import annotations

import random

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

    def one(self, model: type) -> object | None:
        keys = list(model.objects.order_by("id").values_list("pk", flat=True))
        # Mostly the same few rows, so that some parents get many children.
        return model.objects.get(pk=keys[min(int(self.random.expovariate(0.7)), len(keys) - 1)]) if keys else None

    def some(self, model: type) -> object:
        keys = list(model.objects.order_by("id").values_list("pk", flat=True))
        return model.objects.filter(pk__in=self.random.sample(keys, min(len(keys), self.random.choice([1, 3, 40]))))

    def new_author(self) -> None:
        author(str(self.random.random()))

    def far_author(self) -> None:
        Author.objects.bulk_create([Author(id=self.free_id(Author), name="Far", city="x")])
        set_sequences()

    def free_id(self, model: type) -> int:
        top = model.objects.order_by("-id").values_list("id", flat=True).first() or 0
        return top + self.random.choice([1, 200, 65_000, 20_000_000])

    def new_post(self) -> None:
        post(self.one(Author))

    def new_posts(self) -> None:
        writers = [self.one(Author) for _ in range(3)]
        rows = self.random.choice([5, 400])
        Post.objects.bulk_create([Post(author=self.random.choice(writers), title="t", body="b") for _ in range(rows)])

    def new_comment(self) -> None:
        comments(self.one(Post), 1)[0].save()

    def new_comments(self) -> None:
        parents = [self.one(Post) for _ in range(3)]
        rows = self.random.choice([5, 700])
        Comment.objects.bulk_create(
            [comments(self.random.choice(parents), 1)[0] for _ in range(rows)],
            batch_size=self.random.choice([None, 100]),
        )

    def far_comment(self) -> None:
        Comment.objects.bulk_create(comments(self.one(Post), 1, id=self.free_id(Comment)))
        set_sequences()

    def delete_some(self) -> None:
        self.some(self.random.choice([Post, Comment, Comment])).delete()

    def delete_author(self) -> None:
        if Author.objects.count() > 3:
            self.one(Author).delete()

    def delete_range(self) -> None:
        key = self.one(Comment)
        if key:
            sql("DELETE FROM benchapp_comment WHERE id BETWEEN %s AND %s", key.pk, key.pk + 300)

    def move_posts(self) -> None:
        self.some(Post).update(author=self.one(Author))

    def move_comments(self) -> None:
        self.some(Comment).update(post=self.one(Post))

    def move_by_save(self) -> None:
        row = self.one(Comment)
        if row:
            row.post = self.one(Post)
            row.save()

    def move_by_bulk_update(self) -> None:
        rows, parent = list(self.some(Comment)), self.one(Post)
        for row in rows:
            row.post = parent
        Comment.objects.bulk_update(rows, ["post"])

    def save_stale(self) -> None:
        for model in (Author, Post):
            row = self.one(model)
            self.new_post()
            self.new_comment()
            row.save()

    def roll_back(self) -> None:
        with transaction.atomic():
            self.new_comments()
            self.delete_some()
            transaction.set_rollback(True)

    def write(self) -> str:
        if not Author.objects.exists():
            kind = "new_author"
        elif not Post.objects.exists():
            kind = "new_post"
        else:
            # Each once before any comes again.
            self.kinds = self.kinds or self.random.sample(KINDS, len(KINDS))
            kind = self.kinds.pop()
        getattr(self, kind)()
        return kind


KINDS = [name for name in vars(Writer) if name not in ("one", "some", "free_id", "write") and "__" not in name]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.servers)])
def test_random_writes_keep_every_page_equal_to_stock_pagination(site_database, seed: int):
    writer = Writer(seed)
    for _ in range(3):
        writer.new_author()
        writer.new_posts()
    Comment.objects.bulk_create(comments(writer.one(Post), 700))
    written = []
    for _ in range(60):
        written.append(writer.write())
        assert page_index.differences(connection) == [], f"after {written}"
        if len(written) % 6 == 0:
            for pages, expected in every_page():
                assert pages == expected, f"after {written}"
