"""Writes inside the running site: an author with a post and comments, made, changed and removed again by request.

Nothing else can be written here: every address names an author that `make` has made. Each request answers with what
the site's pages must say from now on.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable
from typing import Any

from django.contrib.humanize.templatetags.humanize import intcomma
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from benchapp import pagination
from benchapp.caching.invalidation import StalePages, invalidate
from benchapp.invalidation import stale_after_write
from benchapp.models import Author, Comment, Post
from benchapp.views import page
from probes import render_gate
from probes.rendered import probe_page

# Names that nobody has: a person's row must never pass for one of these.
PREFIX = "probe-"
NAME = re.compile(rf"{PREFIX}[0-9a-f]{{16}}")
# Characters of the body of a large page.
LARGE = 90_000


@never_cache
@require_POST
@transaction.atomic
def make(request: HttpRequest) -> JsonResponse:
    """A new author with one post and one comment on it."""
    author = Author.objects.create(name=_words(), city=_words(), bio=_words())
    post = Post.objects.create(author=author, title=_words(), body=_words())
    _say(post)
    return _state(author)


@never_cache
@require_POST
def write(request: HttpRequest, pk: int, what: str) -> JsonResponse:
    """Do to the rows of a probe's author what the address says."""
    author = made_by_probe(pk)
    if what not in WRITES:
        raise Http404(f"no such write: {what}")
    never = WRITES[what](author)
    return _state(author, never or ())


@page
def title(request: HttpRequest, pk: int) -> HttpResponse:
    """A page that says the title of an author's post; the writes here tell the layers that it is stale."""
    return probe_page([("title", title_of(pk))])


@page
def large(request: HttpRequest, pk: int) -> HttpResponse:
    """A large page whose every line is the title of an author's post, with a mark at both ends."""
    line = title_of(pk)
    lines = "\n".join([line] * (LARGE // (len(line) + 1)))
    return probe_page([("begin", line), ("lines", lines), ("end", line)])


def made_by_probe(pk: int) -> Author:
    """The author of that number, if `make` has made it; Http404 for all others."""
    return get_object_or_404(Author, pk=pk, name__regex=f"^{NAME.pattern}$")


def title_of(pk: int) -> str:
    """The title of the one post of an author that `make` has made."""
    return get_object_or_404(Post, author=made_by_probe(pk)).title


def pages_of(pk: int) -> StalePages:
    """The probes' own pages that show an author's post."""
    return StalePages(prefixes=frozenset({reverse("probe_author", args=[pk])}))


def remove_all() -> int:
    """Remove whatever `make` has made and nobody has removed; returns how many authors."""
    left = [author for author in Author.objects.filter(name__startswith=PREFIX) if NAME.fullmatch(author.name)]
    for author in left:
        author.delete()
    return len(left)


def _rename(author: Author) -> None:
    """A person edits the author: the name stands on all of the author's posts, too."""
    author.name = _words()
    author.save()


def _edit(author: Author) -> None:
    post = author.posts.get()
    post.title = _words()
    with transaction.atomic():
        post.save()
        invalidate(pages_of(author.pk))


def _update(author: Author) -> None:
    """A bulk update, which sends no signal of Django: whoever makes one announces it."""
    post = author.posts.get()
    with transaction.atomic():
        Post.objects.filter(author=author).update(title=_words())
        invalidate(stale_after_write(post, created=False, old_parent=None) | pages_of(author.pk))


def _update_silently(author: Author) -> None:
    """What a person does in the database's own shell: nobody is told, and the time to live has to end old pages."""
    Post.objects.filter(author=author).update(title=_words())


def _comment(author: Author) -> None:
    with transaction.atomic():
        _say(author.posts.get())


def _say(post: Post) -> None:
    # The name of nobody else: that of an author must be gone from all pages once it is another.
    Comment.objects.create(post=post, name=_words(), body=_words(), rating=5)


def _roll_back(author: Author) -> list[str]:
    """Everything that the others do, and then none of it: the words that were written and never came to be.

    While the author's gate is closed the transaction stays open, with the new words in it and nothing deleted yet.
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


def _delete(author: Author) -> None:
    with transaction.atomic():
        author.posts.get().delete()
        invalidate(pages_of(author.pk))


def _remove(author: Author) -> None:
    with transaction.atomic():
        Author.objects.get(pk=author.pk).delete()
        invalidate(pages_of(author.pk))


# Each returns the words that no page may ever show, if there are any.
WRITES: dict[str, Callable[[Author], list[str] | None]] = {
    "look": lambda author: None,
    "rename": _rename,
    "edit": _edit,
    "update": _update,
    "update-silently": _update_silently,
    "comment": _comment,
    "roll-back": _roll_back,
    "delete": _delete,
    "remove": _remove,
}


def _state(author: Author, never: Iterable[str] = ()) -> JsonResponse:
    """What pages say of an author now, and the words that they `never` say."""
    return JsonResponse(_state_of(author) | {"never": list(never)})


def _state_of(author: Author) -> dict[str, Any]:
    """Name, title and newest comment (null when there is none), counts, the totals, and where pages are."""
    post = Post.objects.filter(author=author.pk).first()
    comment = Comment.objects.filter(post__author=author.pk).order_by("-id").first()
    totals = pagination.total_authors(), pagination.total_posts(), pagination.total_comments()
    authors, posts, comments = (intcomma(total) for total in totals)
    return {
        "author": author.pk,
        "name": Author.objects.filter(pk=author.pk).values_list("name", flat=True).first(),
        "title": post and post.title,
        "posts": _counted(Post.objects.filter(author=author.pk).count(), "post"),
        "said": _counted(Comment.objects.filter(post__author=author.pk).count(), "comment"),
        "comment": comment and comment.body,
        "totals": f"{authors} authors, {posts} posts and {comments} comments",
        "author_page": reverse("author", args=[author.pk]),
        "post_page": post and reverse("post", args=[post.pk]),
        "probe_page": reverse("probe_author", args=[author.pk]),
    }


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{pluralize(number)}"


def _words() -> str:
    return f"{PREFIX}{secrets.token_hex(8)}"
