"""The page index stays right whatever is written, and however."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import IntegrityError, connection, transaction
from django.db.models import F

from benchapp import counted, pagination
from benchapp.models import Author, Comment, Post, RangeCount

from .pages import every_page, keys_of

FAR = 1 << 40


def author(name: str = "Ann", **fields: object) -> Author:
    return Author.objects.create(name=name, city="Ghent", bio="Writes.", **fields)


def post(author: Author, **fields: object) -> Post:
    return Post.objects.create(author=author, title="On canals", body="Water.", **fields)


def comments(post: Post, rows: int, **fields: object) -> list[Comment]:
    return [Comment(post=post, name="Bob", body="Yes.", rating=5, **fields) for _ in range(rows)]


def sql(statement: str, *values: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def set_sequences() -> None:
    """After rows with ids of their own, go on from the highest."""
    for statement in connection.ops.sequence_reset_sql(no_style(), [Author, Post, Comment]):
        sql(statement)


def numbers(rows: object) -> list[int]:
    return list(rows.order_by("number").values_list("number", flat=True))


def assert_right() -> None:
    """The index agrees with the rows, and the pages with stock pagination."""
    assert counted.differences(connection) == []
    for pages, expected in every_page():
        assert pages == expected


# --- Numbers ------------------------------------------------------------------------------------


def test_children_are_numbered_in_the_order_of_writing(site_database):
    ann, bea = author("Ann"), author("Bea")
    for writer in (ann, bea, ann, ann):
        post(writer)
    Comment.objects.bulk_create(comments(ann.posts.first(), 300))
    assert numbers(ann.posts) == [1, 2, 3]
    assert numbers(bea.posts) == [1]
    assert numbers(ann.posts.first().comments) == list(range(1, 301))
    ann.refresh_from_db()
    assert ann.post_count == 3
    assert_right()


def test_a_number_is_never_given_twice(site_database):
    ann = author()
    first = post(ann)
    for _ in range(3):
        newest = post(ann)
        newest.delete()
    ann.posts.all().delete()
    post(ann)
    assert not Post.objects.filter(pk=first.pk).exists()
    assert numbers(ann.posts) == [5]
    call_command("recount", verbosity=0)
    counted.rebuild(connection)
    post(ann)
    assert numbers(ann.posts) == [5, 6]
    ann.posts.all().delete()
    counted.rebuild(connection)
    post(ann)
    assert numbers(ann.posts) == [7]
    assert_right()


def test_deleted_parents_leave_nothing_in_the_index(site_database):
    ann = author()
    Comment.objects.bulk_create(comments(post(ann), 600))
    post(ann).delete()
    ann.delete()
    assert not RangeCount.objects.exists()


def test_rows_given_with_their_numbers_keep_them(site_database):
    ann = author(post_count=77)
    post(ann, number=300, comment_count=5)
    post(ann)
    ann.refresh_from_db()
    assert ann.post_count == 2
    assert numbers(ann.posts) == [300, 301]
    assert set(Post.objects.values_list("comment_count", flat=True)) == {0}
    assert_right()


def test_children_may_be_written_before_their_parents(site_database):
    with transaction.atomic():
        Post.objects.bulk_create([Post(id=5, author_id=9, title="t", body="b") for _ in range(1)])
        Author.objects.create(id=9, name="Late", city="x")
        post(Author.objects.get(pk=9))
    assert Author.objects.get(pk=9).post_count == 2
    assert_right()


# --- Saves that know less than the database -----------------------------------------------------


def test_saving_a_row_again_overwrites_no_kept_value(site_database):
    ann = author()
    stale = Author.objects.get(pk=ann.pk)
    written = post(ann)  # knows no number
    Comment.objects.bulk_create(comments(written, 3))
    stale.name = "Anna"
    stale.save()
    written.title = "On dikes"
    written.save()
    written.refresh_from_db()
    ann.refresh_from_db()
    assert (ann.name, ann.post_count) == ("Anna", 1)
    assert (written.title, written.number, written.comment_count) == ("On dikes", 1, 3)
    assert_right()


def test_counts_cannot_be_set_by_hand(site_database):
    ann = author()
    post(ann)
    Author.objects.update(post_count=50)
    Post.objects.update(comment_count=F("comment_count") + 1, views=7)
    sql("UPDATE benchapp_author SET post_count = 9, city = 'Lund'")
    ann.refresh_from_db()
    assert (ann.post_count, ann.city) == (1, "Lund")
    assert (ann.posts.get().comment_count, ann.posts.get().views) == (0, 7)
    assert_right()


def test_children_can_be_renumbered(site_database):
    written = post(author())
    Comment.objects.bulk_create(comments(written, 3))
    written.comments.filter(number=3).update(number=70_000)
    written.comments.filter(number=2).update(number=20_000_000)
    assert_right()
    Comment.objects.bulk_create(comments(written, 1))
    assert numbers(written.comments) == [1, 70_000, 20_000_000, 20_000_001]
    sql("UPDATE benchapp_comment SET number = NULL")
    assert numbers(written.comments) == [1, 70_000, 20_000_000, 20_000_001]
    assert_right()


def test_an_id_cannot_be_changed(site_database):
    Comment.objects.bulk_create(comments(post(author()), 1))
    for model in (Author, Post, Comment):
        table = model._meta.db_table
        with pytest.raises(IntegrityError, match=f"{table}: an id cannot be changed; insert a new row and"):
            model.objects.update(id=F("id") + 1)
    assert_right()


# --- Moves to another parent --------------------------------------------------------------------


def moved_by_save(rows: object, parent: Post) -> None:
    for row in rows:
        row.post = parent
        row.save()


def moved_by_update(rows: object, parent: Post) -> None:
    rows.update(post=parent)


def moved_by_bulk_update(rows: object, parent: Post) -> None:
    rows = list(rows)
    for row in rows:
        row.post = parent
    Comment.objects.bulk_update(rows, ["post"])


@pytest.mark.parametrize("move", [moved_by_save, moved_by_update, moved_by_bulk_update])
def test_moved_rows_go_to_the_end_of_their_new_parent(site_database, move: Callable):
    ann = author()
    source, target = post(ann), post(ann)
    Comment.objects.bulk_create(comments(source, 600) + comments(target, 300))
    kept = list(target.comments.order_by("number").values_list("pk", flat=True))
    moving = source.comments.filter(number__gt=290).order_by("number")
    move(moving, target)
    assert numbers(source.comments) == list(range(1, 291))
    assert numbers(target.comments) == list(range(1, 611))
    assert list(target.comments.filter(number__lte=300).order_by("number").values_list("pk", flat=True)) == kept
    source.refresh_from_db()
    target.refresh_from_db()
    assert (source.comment_count, target.comment_count) == (290, 610)
    assert_right()
    Comment.objects.bulk_create(comments(source, 1))
    assert numbers(source.comments)[-1] == 601, "the numbers of moved rows are not given again"
    assert_right()


def test_a_moved_post_takes_its_comments_along(site_database):
    ann, bea = author("Ann"), author("Bea")
    moving = post(ann)
    Comment.objects.bulk_create(comments(moving, 300))
    post(bea)
    Post.objects.filter(pk=moving.pk).update(author=bea)
    moving.refresh_from_db()
    assert (moving.number, moving.comment_count, moving.author) == (2, 300, bea)
    assert_right()


def test_rows_exchanged_by_one_statement(site_database):
    ann, bea = author("Ann"), author("Bea")
    for writer in (ann, ann, bea, bea):
        post(writer)
    sql(f"UPDATE benchapp_post SET author_id = {ann.pk + bea.pk} - author_id")
    assert numbers(ann.posts) == numbers(bea.posts) == [3, 4]
    assert_right()


# --- Raw SQL ------------------------------------------------------------------------------------

RAW_COMMENT = "benchapp_comment (id, post_id, name, body, created, rating) VALUES (%s, %s, 'n', 'b', '2024-01-01', 5)"


def test_raw_inserts_and_deletes(site_database):
    written = post(author())
    for key in (1, 255, 256, 65_536, FAR, FAR * 2, -3):
        sql(f"INSERT INTO {RAW_COMMENT}", key, written.pk)
    assert_right()
    assert keys_of(pagination.page_of_comments(1)) == [FAR * 2, FAR, 65_536, 256, 255, 1, -3]
    sql("DELETE FROM benchapp_comment WHERE id > 1000")
    assert numbers(written.comments) == [1, 2, 3, 7]
    assert_right()


def test_inserts_that_meet_a_row_of_the_same_key(site_database):
    written, other = post(author()), post(author())
    sql(f"INSERT INTO {RAW_COMMENT}", 7, written.pk)
    sql(f"INSERT INTO {RAW_COMMENT} ON CONFLICT (id) DO NOTHING", 7, other.pk)
    assert_right()
    sql(f"INSERT INTO {RAW_COMMENT} ON CONFLICT (id) DO UPDATE SET body = 'changed'", 7, written.pk)
    assert_right()
    sql(f"INSERT INTO {RAW_COMMENT} ON CONFLICT (id) DO UPDATE SET post_id = excluded.post_id", 7, other.pk)
    assert (numbers(written.comments), numbers(other.comments)) == ([], [1])
    assert_right()
    same = Comment(id=7, post=other, name="n", body="again", rating=1)
    Comment.objects.bulk_create([same], update_conflicts=True, unique_fields=["id"], update_fields=["body"])
    Comment.objects.bulk_create([same], ignore_conflicts=True)
    assert Comment.objects.get().body == "again"
    assert_right()


@pytest.mark.parametrize("policy", ["OR REPLACE", "OR IGNORE", "OR FAIL", "OR ABORT"])
def test_sqlite_conflict_policies(sqlite_site, policy: str):
    written, other = post(author()), post(author())
    Comment.objects.bulk_create(comments(written, 300))
    for key, parent in ((4, written), (5, other), (1_000_000, written)):
        try:
            sql(f"INSERT {policy} INTO {RAW_COMMENT}", key, parent.pk)
        except IntegrityError:
            assert policy in ("OR FAIL", "OR ABORT")
        assert_right()
    for key in (8, 9):
        try:
            sql(f"UPDATE {policy} benchapp_comment SET number = 20 WHERE id = %s", key)
        except IntegrityError:
            assert policy in ("OR FAIL", "OR ABORT")
        assert_right()
    sql(f"UPDATE {policy} benchapp_comment SET post_id = %s WHERE id = 10", other.pk)
    assert_right()


def test_copy_and_truncate(postgresql_site):
    import io

    ann = author()
    written = post(ann)
    post(ann)
    with connection.cursor() as cursor:
        cursor.copy_expert(
            "COPY benchapp_comment (post_id, name, body, created, rating) FROM STDIN",
            io.StringIO(f"{written.pk}\tn\tb\t2024-01-01\t5\n" * 700),
        )
    assert numbers(written.comments) == list(range(1, 701))
    assert_right()
    sql("TRUNCATE benchapp_comment")
    assert_right()
    Comment.objects.bulk_create(comments(written, 2))
    assert numbers(written.comments) == [1, 2]
    sql("TRUNCATE benchapp_post CASCADE")
    assert_right()
    assert Author.objects.get().post_count == 0
    sql("TRUNCATE benchapp_author CASCADE")
    assert not RangeCount.objects.exists()


def test_flush_empties_the_index_and_leaves_it_working(site_database):
    Comment.objects.bulk_create(comments(post(author()), 600))
    call_command("flush", interactive=False, verbosity=0)
    assert not RangeCount.objects.exists()
    Comment.objects.bulk_create(comments(post(author()), 600))
    assert_right()


def test_a_dump_can_be_loaded(site_database, tmp_path):
    written = post(author())
    Comment.objects.bulk_create(comments(written, 300))
    written.comments.filter(number__lt=5).delete()
    dump = tmp_path / "dump.json"
    models = ["benchapp.author", "benchapp.post", "benchapp.comment"]
    call_command("dumpdata", *models, output=str(dump), verbosity=0)
    kept = ("id", "post_id", "number", "body")
    before = list(Comment.objects.values(*kept))
    call_command("flush", interactive=False, verbosity=0)
    call_command("loaddata", str(dump), verbosity=0)
    assert list(Comment.objects.values(*kept)) == before
    call_command("loaddata", str(dump), verbosity=0)
    assert_right()


def test_a_rolled_back_write_leaves_no_trace(site_database):
    written = post(author())
    with pytest.raises(RuntimeError), transaction.atomic():
        Comment.objects.bulk_create(comments(written, 300))
        written.delete()
        raise RuntimeError
    assert_right()
    assert Post.objects.get().comment_count == 0


# --- Anything in any order ----------------------------------------------------------------------


class Writer:
    """Random writes of every kind, always possible ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

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
        parent = self.one(Post)
        top = parent.comments.order_by("-number").values_list("number", flat=True).first() or 0
        number = min(top + self.random.choice([1, 300, 70_000, 17_000_000]), 2_000_000_000)
        if number > top:
            Comment.objects.bulk_create(comments(parent, 1, id=self.free_id(Comment), number=number))
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
        kinds = [name for name in vars(Writer) if name not in ("one", "some", "free_id", "write") and "__" not in name]
        if not Author.objects.exists():
            kinds = ["new_author"]
        elif not Post.objects.exists():
            kinds = ["new_post"]
        kind = self.random.choice(kinds)
        getattr(self, kind)()
        return kind


@pytest.mark.parametrize("seed", range(4))
def test_random_writes_keep_every_page_equal_to_stock_pagination(site_database, seed: int):
    writer = Writer(seed)
    for _ in range(3):
        writer.new_author()
        writer.new_posts()
    Comment.objects.bulk_create(comments(writer.one(Post), 700))
    written = []
    for _ in range(60):
        written.append(writer.write())
        assert counted.differences(connection) == [], f"after {written}"
        if len(written) % 6 == 0:
            for pages, expected in every_page():
                assert pages == expected, f"after {written}"
