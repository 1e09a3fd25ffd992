"""Pages of the site: thin functions between pagination, forms and templates."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.views import redirect_to_login
from django.db import OperationalError, connection, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.template import loader
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from benchapp import pagination
from benchapp.caching.rendering import name_rendering
from benchapp.caching.rendering import public_page as page
from benchapp.forms import CommentForm
from benchapp.home import Home
from benchapp.login_limit import LimitedLogin
from benchapp.models import Author, Comment, Post
from benchapp.pager import Pager, page_url

View = Callable[..., HttpResponse]
# When visitors, and programs that read the header, are to come back while the database cannot be used.
RETRY_AFTER_S = 5
PAGE_NUMBER = re.compile(r"[1-9][0-9]{0,17}")


def numbered_page(view: View) -> View:
    """A page of a list; page 1 has only the URL without a number."""

    @wraps(view)
    def numbered(request: HttpRequest, number: int | None = None, **kwargs: object) -> HttpResponse:
        if number == 1:
            return redirect(request.path.removesuffix("page/1/"), permanent=True)
        return view(request, number=number or 1, **kwargs)

    return page(numbered)


@page
def home(request: HttpRequest) -> HttpResponse:
    """The home page: ten parts, each of which can be cached by itself."""
    return render(request, "home.html", {"home": Home(), "ttl": settings.CACHING_SECONDS})


@numbered_page
def authors(request: HttpRequest, number: int) -> HttpResponse:
    """All authors, the newest first, 25 a page."""
    page = pagination.page_of_authors(number)
    return _list(request, "authors.html", page, reverse("authors"))


@numbered_page
def posts(request: HttpRequest, number: int) -> HttpResponse:
    """All posts, the newest first, 25 a page."""
    page = pagination.page_of_posts(number)
    return _list(request, "posts.html", page, reverse("posts"))


@numbered_page
def comments(request: HttpRequest, number: int) -> HttpResponse:
    """All comments, the newest first, 25 a page."""
    page = pagination.page_of_comments(number)
    return _list(request, "comments.html", page, reverse("comments"))


@numbered_page
def author(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """An author with their posts, 25 a page; 404 for an id that is not there."""
    author = get_object_or_404(Author, pk=pk)
    page = pagination.page_of_author_posts(author, number)
    pager = Pager(page, reverse("author", args=[pk]), "#posts")
    return render(request, "author.html", {"author": author, "page": page, "pager": pager})


@numbered_page
def post(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """A post with its comments, 25 a page, and the comment form for a visitor who is logged in."""
    form = CommentForm() if request.user.is_authenticated else None
    return _post(request, _post_or_404(pk), number, form)


@require_POST
def comment(request: HttpRequest, pk: int) -> HttpResponse:
    """Save a comment and redirect to the page that shows it; an invalid form is shown again below the post."""
    post_url = reverse("post", args=[pk])
    if not request.user.is_authenticated:
        return redirect_to_login(post_url)
    post = _post_or_404(pk)
    form = CommentForm(request.POST, instance=Comment(post=post, name=_pen_name(request.user)))
    if not form.is_valid():
        response = _post(request, post, 1, form)
        response.status_code = 422
        return response
    with transaction.atomic():
        new = form.save()
        number = _page_of_comment(new)
    return HttpResponseRedirect(f"{page_url(post_url, number)}#comment-{new.pk}")


@require_safe
def jump(request: HttpRequest, name: str, pk: int | None = None) -> HttpResponse:
    """Redirect the form that asks for a page number (`?page=7`) to the URL of that page."""
    number = request.GET.get("page", "").strip()
    if not PAGE_NUMBER.fullmatch(number):
        raise Http404("not a page number")
    return redirect(page_url(reverse(name, args=[pk] if pk else []), int(number)))


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Health check of the process: it uses no database and no cache."""
    return HttpResponse("ok\n", content_type="text/plain; charset=utf-8")


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Whether the site can answer with pages: 503 while its database cannot be used."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except OperationalError:
        answer = HttpResponse("no database\n", content_type="text/plain; charset=utf-8", status=503)
        answer.headers["Retry-After"] = str(RETRY_AFTER_S)
        return answer
    return HttpResponse("ok\n", content_type="text/plain; charset=utf-8")


login = LimitedLogin.as_view()


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The page for a malformed request, or one for a host that is not ours."""
    return _plain(request, "400.html", 400)


def server_error(request: HttpRequest) -> HttpResponse:
    """The page for an internal error, or for a database that cannot be used now: no session, no context."""
    if not isinstance(sys.exc_info()[1], OperationalError):
        return _plain(request, "500.html", 500)
    response = _plain(request, "503.html", 503)
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response


def _plain(request: HttpRequest, template: str, status: int) -> HttpResponse:
    # Outside of all middleware, so X-Render-Id is set here.
    return name_rendering(HttpResponse(loader.render_to_string(template), status=status))


def _list(request: HttpRequest, template: str, page: pagination.Page, base: str) -> HttpResponse:
    return render(request, template, {"page": page, "pager": Pager(page, base)})


def _post(request: HttpRequest, post: Post, number: int, form: CommentForm | None) -> HttpResponse:
    page = pagination.page_of_post_comments(post, number)
    pager = Pager(page, reverse("post", args=[post.pk]), "#comments")
    return render(request, "post.html", {"post": post, "page": page, "pager": pager, "form": form})


def _post_or_404(pk: int) -> Post:
    return get_object_or_404(Post.objects.select_related("author"), pk=pk)


def _pen_name(user: AbstractBaseUser) -> str:
    """The name a comment is signed with: unique, and as long as its column takes."""
    return user.get_username()[: Comment._meta.get_field("name").max_length]


def _page_of_comment(comment: Comment) -> int:
    """The number of the page of its post that shows a comment, oldest first.

    A new comment is the last one; those that others have written since are counted off the end.
    """
    total = Post.objects.values_list("comment_count", flat=True).get(pk=comment.post_id)
    later = Comment.objects.filter(post=comment.post_id, id__gt=comment.pk).count()
    return (total - later - 1) // pagination.PER_PAGE + 1
