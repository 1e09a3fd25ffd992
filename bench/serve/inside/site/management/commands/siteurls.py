"""Print one real URL of every kind of page, for checks from outside."""

from __future__ import annotations

from django.core.management.base import CommandError
from django.db import DatabaseError
from django.urls import reverse

from bench.serve.inside.management.commands import siteurls
from benchapp import pagination
from benchapp.management import databases
from benchapp.models import Author, Comment, Post

# A number that no list and no table reaches.
BEYOND = 999_999_999


class Command(siteurls.Command):
    """Prints each kind of page with one example URL."""

    help = "Print one real URL of every kind of page that the rows at hand allow, as a JSON object."

    def urls(self) -> dict[str, str]:
        try:
            return urls_by_kind()
        except DatabaseError as error:
            raise CommandError(databases.problem(error)) from error


def urls_by_kind() -> dict[str, str]:
    """URLs by kind; a kind without an example among the rows is left out. CommandError without rows.

    All return 200 except kinds that end in `_beyond` or `_redirect`. `list` and `detail` are what visitors read beside
    the home page, `section` is the first page of a list, `commented` accepts comments; no check changes `lasting`, and
    no comment `uncommented`.

    The author and the post are the ones with the most children, so that they have a second page if any has.
    """
    author = Author.objects.order_by("-post_count", "-id").first()
    post = Post.objects.order_by("-comment_count", "-id").first()
    if not author or not post or not Comment.objects.exists():
        raise CommandError("the tables are empty: run ./manage.py loadfixtures")
    author_url, post_url = reverse("author", args=[author.pk]), reverse("post", args=[post.pk])
    urls = {"home": reverse("home"), "login": reverse("login"), "health": reverse("healthz")}
    for kind, base, rows in (
        ("authors", reverse("authors"), pagination.total(Author)),
        ("posts", reverse("posts"), pagination.total(Post)),
        ("comments", reverse("comments"), pagination.total(Comment)),
        ("author", author_url, author.post_count),
        ("post", post_url, post.comment_count),
    ):
        urls |= _list_urls(kind, base, -(-rows // pagination.PER_PAGE))
    roles = {
        "list": urls.get("posts_page", urls["posts"]),
        "detail": post_url,
        "section": urls["posts"],
        "lasting": author_url,
        "uncommented": urls["authors"],
        "commented": post_url,
        "posts_redirect": f"{urls['posts']}page/1/",
        "jump_redirect": f"{reverse('posts_jump')}?page=2",
    }
    return urls | roles | _beyond_urls()


def _beyond_urls() -> dict[str, str]:
    """URLs of missing pages."""
    lists = ("authors", "posts", "comments")
    urls = {f"{name}_page_beyond": pagination.page_url(reverse(name), BEYOND) for name in lists}
    urls |= {f"{name}_beyond": reverse(name, args=[BEYOND]) for name in ("author", "post")}
    return urls | {"zero_beyond": f"{reverse('posts')}page/0/"}


def _list_urls(kind: str, base: str, pages: int) -> dict[str, str]:
    """The first, second, middle and last page of a list, as far as they are different pages."""
    others = {f"{kind}_page": 2, f"{kind}_middle": pages // 2, f"{kind}_last": pages}
    return {kind: base} | {name: pagination.page_url(base, page) for name, page in others.items() if 2 <= page <= pages}
