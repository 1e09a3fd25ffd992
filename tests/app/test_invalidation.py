"""The pages that a write makes stale, and the time of their invalidation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import transaction

from benchapp.caching.invalidation import StalePages, invalidate, pages_invalidated
from benchapp.caching.invalidation import all_pages as every_page
from benchapp.models import Author, Comment, Post
from tests.app.conftest import Rows


def all_pages(rows: Rows) -> list[str]:
    other_post, other_author = rows.post.pk + 1, rows.author.pk + 1
    return [
        "/",
        "/login/",
        *(f"/{name}/{end}" for name in ("authors", "posts", "comments") for end in ("", "page/2/")),
        *(f"/authors/{pk}/{end}" for pk in (rows.author.pk, other_author) for end in ("", "page/2/")),
        *(f"/posts/{pk}/{end}" for pk in (rows.post.pk, other_post) for end in ("", "page/2/")),
    ]


def test_comment_touches_home_its_post_and_the_comments(rows: Rows, stale_after: Callable):
    new = Comment(post=rows.post, name="Z", body="z", rating=1)
    mine = {f"/posts/{rows.post.pk}/", f"/posts/{rows.post.pk}/page/2/"}
    expected = {"/", "/comments/", "/comments/page/2/", *mine}
    for write in [new.save, new.save, new.delete]:
        stale = stale_after(write)
        assert {page for page in all_pages(rows) if stale.covers(page)} == expected


def test_post_touches_its_author_and_all_lists(rows: Rows, stale_after: Callable):
    lists = {page for page in all_pages(rows) if page.count("/") < 3 or "s/page/" in page} - {"/login/"}
    author = {f"/authors/{rows.author.pk}/", f"/authors/{rows.author.pk}/page/2/"}
    mine = {f"/posts/{rows.post.pk}/", f"/posts/{rows.post.pk}/page/2/"}
    stale = stale_after(rows.post.save)
    assert {page for page in all_pages(rows) if stale.covers(page)} == lists | author | mine
    new = Post(author=rows.author, title="New", body="new")
    stale = stale_after(new.save)
    assert {page for page in all_pages(rows) if stale.covers(page)} == lists | author
    stale = stale_after(new.delete)
    assert {page for page in all_pages(rows) if stale.covers(page)} == lists | author


def test_new_author_touches_home_and_the_authors(rows: Rows, stale_after: Callable):
    stale = stale_after(Author(name="New", city="Oslo").save)
    assert {page for page in all_pages(rows) if stale.covers(page)} == {"/", "/authors/", "/authors/page/2/"}


def test_renamed_author_touches_all_that_may_show_the_name(rows: Rows, stale_after: Callable):
    stale = stale_after(rows.author.save)
    names = {page for page in all_pages(rows) if page.startswith(("/authors/", "/posts/"))}
    assert {page for page in all_pages(rows) if stale.covers(page)} == {"/"} | names


def test_deleted_author_takes_the_posts_along(rows: Rows, stale_after: Callable):
    pages = all_pages(rows)
    stale = stale_after(rows.author.delete)
    assert {page for page in pages if not stale.covers(page)} == {"/login/"}


def test_moved_rows_touch_the_old_parent_too(rows: Rows, stale_after: Callable):
    other = Author.objects.exclude(pk=rows.author.pk).latest("id")
    post = Post.objects.filter(author=rows.author).latest("id")
    post.author = other
    stale = stale_after(post.save)
    assert stale.covers(f"/authors/{rows.author.pk}/page/2/")
    assert stale.covers(f"/authors/{other.pk}/")
    for moved in (Comment.objects.filter(post=rows.post).latest("id"), Comment(name="N", body="B", rating=5)):
        # One that was read, and one that is written over another of which only the key is known.
        moved.pk = moved.pk or Comment.objects.filter(post=rows.post).latest("id").pk
        moved.post = post
        stale = stale_after(moved.save)
        assert stale.covers(f"/posts/{rows.post.pk}/")
        assert stale.covers(f"/posts/{post.pk}/")


@pytest.mark.django_db(transaction=True)
def test_a_cascading_delete_sends_one_invalidation(invalidated: list[StalePages]):
    # As where settings of tests have other applications: they all get ready again.
    apps.get_app_config("benchapp").ready()
    with transaction.atomic():
        author = Author.objects.create(name="A", city="B")
        posts = [Post.objects.create(author=author, title="T", body="B") for _ in range(2)]
        for post in posts:
            Comment.objects.create(post=post, name="N", body="B", rating=5)
    for doomed, pk in ((posts[0], posts[0].pk), (Author.objects.filter(pk=author.pk), posts[1].pk)):
        invalidated.clear()
        doomed.delete()
        assert len(invalidated) == 1
        assert all(map(invalidated[0].covers, ("/", "/comments/page/2/", f"/posts/{pk}/")))
    assert not Post.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_pages_of_a_transaction_are_invalidated_together(invalidated: list[StalePages]):
    def write(*paths: str) -> None:
        for path in paths:
            invalidate(StalePages(frozenset({"/", path}), frozenset({f"{path}page/"})))

    with pytest.raises(RuntimeError), transaction.atomic():
        write("/lost/")
        raise RuntimeError
    with transaction.atomic():
        transaction.on_commit(lambda: write("/afterwards/"))
        with pytest.raises(RuntimeError), transaction.atomic():
            write("/undone/")
            raise RuntimeError
        write("/a/")
        with transaction.atomic():
            write("/b/", "/c/")
        assert invalidated == []
    assert [stale.paths for stale in invalidated] == [{"/", "/afterwards/"}, {"/", "/a/", "/b/", "/c/"}]
    assert invalidated[1].prefixes == {"/a/page/", "/b/page/", "/c/page/"}
    write("/d/")
    assert [stale.paths for stale in invalidated[2:]] == [{"/", "/d/"}]


@pytest.mark.django_db(transaction=True)
def test_a_failing_layer_affects_neither_the_write_nor_the_other_layers(invalidated: list[StalePages], caplog):
    def fail(**kwargs: object) -> None:
        raise OSError("disk full")

    pages_invalidated.connect(fail)
    try:
        with transaction.atomic():
            Author.objects.create(name="A", city="B")
    finally:
        pages_invalidated.disconnect(fail)
    assert len(invalidated) == 1
    assert Author.objects.count() == 1
    assert "disk full" in caplog.text


def test_bulk_writes_invalidate_by_themselves(db: None, stale_after: Callable):
    assert stale_after(lambda: Author.objects.update(city="Cork")) == StalePages()
    assert stale_after(lambda: invalidate(every_page())) == StalePages(prefixes=frozenset({"/"}))
    assert every_page().covers("/posts/7/page/2/")


@pytest.mark.parametrize("names", [{"paths": {"posts/"}}, {"paths": {""}}, {"prefixes": {"/posts"}}])
def test_stale_pages_are_paths(names: dict[str, set[str]]):
    with pytest.raises(ValueError, match="begin with a slash"):
        StalePages(**{name: frozenset(paths) for name, paths in names.items()})


@pytest.mark.django_db
def test_a_command_invalidates_every_page(invalidated, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        call_command("invalidatepages")
    assert invalidated == [every_page()]
