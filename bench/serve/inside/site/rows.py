"""Writes inside the running site: requests create, change and remove an author with a post and comments.

Nothing else can be written here: every URL names an author made by `create`. Each response has the texts that the
site's pages must show from now on.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import Any

from django.contrib.humanize.templatetags.humanize import intcomma
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from bench.serve.inside.pages import page, probe_page
from bench.serve.inside.site import render_gate
from benchapp import pagination
from benchapp.caching.invalidation import StalePages, invalidate
from benchapp.caching.model_signals import CHANGED
from benchapp.invalidation import stale_after_write
from benchapp.models import Author, Comment, Post

# Names that no person has, so that a person's row never looks like one of these.
PREFIX = "probe-"
NAME = re.compile(rf"{PREFIX}[0-9a-f]{{16}}")
# Characters of the body of a large page.
LARGE_CHARACTERS = 90_000


@never_cache
@require_POST
def create(request: HttpRequest) -> JsonResponse:
    """A new author with one post and one comment."""
    return JsonResponse(created())


@never_cache
@require_POST
def write(request: HttpRequest, pk: int, what: str) -> JsonResponse:
    """Change the rows of a probe's author as the URL says."""
    if what not in WRITES:
        raise Http404(f"no such write: {what}")
    return JsonResponse(written(pk, what))


@page
def title(request: HttpRequest, pk: int) -> HttpResponse:
    """A page with the title of an author's post; the writes here invalidate it."""
    return probe_page([("title", title_of(pk))])


@page
def large(request: HttpRequest, pk: int) -> HttpResponse:
    """A large page."""
    return large_page(pk)


def large_page(pk: int) -> HttpResponse:
    """A page whose every line is the title of an author's post, with a mark at both ends."""
    line = title_of(pk)
    lines = "\n".join([line] * (LARGE_CHARACTERS // (len(line) + 1)))
    return probe_page([("begin", line), ("lines", lines), ("end", line)])


@transaction.atomic
def created() -> dict[str, Any]:
    """Make an author with one post and one comment; returns the texts that pages show now."""
    author = Author.objects.create(name=_random_text(), city=_random_text(), bio=_random_text())
    post = Post.objects.create(author=author, title=_random_text(), body=_random_text())
    _add_comment(post)
    return _state_of(author) | {"never": []}


def written(pk: int, what: str) -> dict[str, Any]:
    """Do one of WRITES to a probe's author; returns the texts that pages show now, and the texts that they `never`
    show.
    """
    author = probe_author(pk)
    never = list(WRITES[what](author) or ())
    state = _state_of(author) | {"never": never}
    if what == "count":
        return state | _counted(author)
    return state


def probe_author(pk: int) -> Author:
    """The author of that number, if made by `create`; Http404 for all others."""
    return get_object_or_404(Author, pk=pk, name__regex=f"^{NAME.pattern}$")


def title_of(pk: int) -> str:
    """The title of the one post of an author made by `create`."""
    return get_object_or_404(Post, author=probe_author(pk)).title


def pages_of(pk: int) -> StalePages:
    """The probes' own pages that show an author's post."""
    return StalePages(prefixes=frozenset({reverse("probe_author", args=[pk])}))


def remove_all() -> int:
    """Remove all remaining authors of `create`; returns how many."""
    left = [author for author in Author.objects.filter(name__startswith=PREFIX) if NAME.fullmatch(author.name)]
    for author in left:
        author.delete()
    return len(left)


def _rename(author: Author) -> None:
    """Rename the author, whose name is on all of the author's posts, too."""
    author.name = _random_text()
    author.save()


def _edit(author: Author) -> None:
    post = author.posts.get()
    post.title = _random_text()
    with transaction.atomic():
        post.save()
        invalidate(pages_of(author.pk))


def _update(author: Author) -> None:
    """A bulk update, which invalidates the pages itself, because Django sends no signal."""
    post = author.posts.get()
    with transaction.atomic():
        Post.objects.filter(author=author).update(title=_random_text())
        invalidate(stale_after_write(post, CHANGED) | pages_of(author.pk))


def _update_silently(author: Author) -> None:
    """A write in the database's own shell: nothing is invalidated; stale pages expire."""
    Post.objects.filter(author=author).update(title=_random_text())


def _delete_silently(author: Author) -> None:
    """The author's post is deleted in the database's own shell: its page silently becomes 404."""
    with transaction.atomic():
        for rows in (Comment.objects.filter(post__author=author.pk), Post.objects.filter(author=author.pk)):
            # Unlike `delete` it sends no signals.
            rows._raw_delete(rows.db)


def _remove_silently(author: Author) -> None:
    """The same with all of the author."""
    with transaction.atomic():
        _delete_silently(author)
        gone = Author.objects.filter(pk=author.pk)
        gone._raw_delete(gone.db)


def _comment(author: Author) -> None:
    with transaction.atomic():
        _add_comment(author.posts.get())


def _add_comment(post: Post) -> None:
    # Another name: the author's old name must be on no page after a rename.
    Comment.objects.create(post=post, name=_random_text(), body=_random_text(), rating=5)


def _roll_back(author: Author) -> list[str]:
    """All the other writes in a transaction that is rolled back; returns the texts that were never committed.

    While the author's gate is closed the transaction stays open, with the new texts written and nothing deleted yet.
    """
    with transaction.atomic():
        _comment(author)
        _edit(author)
        _rename(author)
        written = _state_of(author)
        render_gate.wait_at(author.pk)
        _delete(author)
        _remove(author)
        transaction.set_rollback(True)
    author.refresh_from_db()
    return [written["name"], written["title"], written["comment"]]


def _commit_late(author: Author) -> None:
    """An edit, committed only after the author's gate opens."""
    with transaction.atomic():
        _edit(author)
        render_gate.wait_at(author.pk)


def _move(author: Author) -> None:
    """Give the newest comment of the author's post to another post of the author: Django sends no signal for it."""
    post = author.posts.get()
    with transaction.atomic():
        other = Post.objects.create(author=author, title=_random_text(), body=_random_text())
        newest = post.comments.order_by("-id").values_list("pk", flat=True)[:1]
        Comment.objects.filter(pk=newest.get()).update(post=other)
        invalidate(stale_after_write(post, CHANGED) | pages_of(author.pk))


def _delete(author: Author) -> None:
    with transaction.atomic():
        author.posts.get().delete()
        invalidate(pages_of(author.pk))


def _remove(author: Author) -> None:
    with transaction.atomic():
        Author.objects.get(pk=author.pk).delete()
        invalidate(pages_of(author.pk))


# Each returns the texts that no page may ever show, if there are any.
WRITES: dict[str, Callable[[Author], list[str] | None]] = {
    "look": lambda author: None,
    "count": lambda author: None,
    "rename": _rename,
    "edit": _edit,
    "update": _update,
    "update-silently": _update_silently,
    "delete-silently": _delete_silently,
    "remove-silently": _remove_silently,
    "comment": _comment,
    "move": _move,
    "roll-back": _roll_back,
    "commit-late": _commit_late,
    "delete": _delete,
    "remove": _remove,
}


def _state_of(author: Author) -> dict[str, Any]:
    """Name, title and newest comment (null without one), counts, totals, and URLs."""
    post = Post.objects.filter(author=author.pk).first()
    comment = Comment.objects.filter(post__author=author.pk).order_by("-id").first()
    totals = pagination.total(Author), pagination.total(Post), pagination.total(Comment)
    authors, posts, comments = (intcomma(total) for total in totals)
    return {
        "author": author.pk,
        "name": Author.objects.filter(pk=author.pk).values_list("name", flat=True).first(),
        "title": post and post.title,
        "posts": _count_of(Post.objects.filter(author=author.pk).count(), "post"),
        "comments": _count_of(Comment.objects.filter(post__author=author.pk).count(), "comment"),
        "comment": comment and comment.body,
        "totals": f"{authors} authors, {posts} posts and {comments} comments",
        "author_page": reverse("author", args=[author.pk]),
        "post_page": post and reverse("post", args=[post.pk]),
        "probe_page": reverse("probe_author", args=[author.pk]),
    }


def _counted(author: Author) -> dict[str, str]:
    """The totals as the database counts all rows, without the page index."""
    authors, posts, comments = (intcomma(model._base_manager.count()) for model in (Author, Post, Comment))
    return {"totals": f"{authors} authors, {posts} posts and {comments} comments"}


def _count_of(number: int, what: str) -> str:
    return f"{number} {what}{pluralize(number)}"


def _random_text() -> str:
    return f"{PREFIX}{secrets.token_hex(8)}"
