"""Print one real URL of every kind of page, for checks from outside."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError
from django.urls import reverse

from benchapp import pagination
from benchapp.management import databases
from benchapp.models import Author, Comment, Post
from benchapp.pager import page_url


class Command(BaseCommand):
    """Prints each kind of page with one URL of it that answers 200."""

    help = "Print one real URL of every kind of page that the rows at hand allow."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object instead of a line for each")

    def handle(self, **options: Any) -> None:
        try:
            urls = urls_by_kind()
        except DatabaseError as error:
            raise CommandError(databases.problem(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(urls, indent=2))
        else:
            self.stdout.write("\n".join(f"{kind:<20} {url}" for kind, url in urls.items()))


def urls_by_kind() -> dict[str, str]:
    """URLs by kind; a kind without an example among the rows is left out. CommandError when there are no rows.

    The author and the post are the ones with the most children, so that they have a second page if any has.
    """
    author = Author.objects.order_by("-post_count", "-id").first()
    post = Post.objects.order_by("-comment_count", "-id").first()
    if not author or not post or not Comment.objects.exists():
        raise CommandError("the tables are empty: run ./manage.py loadfixtures")
    author_url, post_url = reverse("author", args=[author.pk]), reverse("post", args=[post.pk])
    urls = {"home": reverse("home"), "login": reverse("login"), "healthz": reverse("healthz")}
    for kind, base, rows in (
        ("authors", reverse("authors"), pagination.total_authors()),
        ("posts", reverse("posts"), pagination.total_posts()),
        ("comments", reverse("comments"), pagination.total_comments()),
        ("author", author_url, author.post_count),
        ("post", post_url, post.comment_count),
    ):
        urls |= _list_urls(kind, base, -(-rows // pagination.PER_PAGE))
    if post.comment_count:
        urls["post_with_comments"] = post_url
    return urls


def _list_urls(kind: str, base: str, pages: int) -> dict[str, str]:
    """The first, second, middle and last page of a list, as far as they are different pages."""
    others = {f"{kind}_page": 2, f"{kind}_middle": pages // 2, f"{kind}_last": pages}
    return {kind: base} | {name: page_url(base, page) for name, page in others.items() if 2 <= page <= pages}
