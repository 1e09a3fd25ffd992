"""Pages of the site: Django's generic views between pagination, forms and templates."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.paginator import Paginator
from django.db import OperationalError, connection, transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect
from django.template import loader
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.utils.decorators import method_decorator
from django.views.decorators.cache import cache_page, never_cache
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_cookie
from django.views.generic import ListView, TemplateView, View

from benchapp.forms import CommentForm
from benchapp.home import Home
from benchapp.models import Author, Comment, Post
from benchapp.pagination import PER_PAGE, ChildrenPaginator, TablePaginator, page_url

# When visitors, and programs that read the header, are to come back while the database cannot be used.
RETRY_AFTER_S = 5
PAGE_NUMBER = re.compile(r"[1-9][0-9]{0,17}")


def private_when_signed_in(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """The view, whose page of a visitor who is signed in no cache shares: it names them and holds their CSRF token."""

    @wraps(view)
    def marked(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        response = view(request, *args, **kwargs)
        if request.user.is_authenticated:
            patch_cache_control(response, private=True)
        return response

    return marked


# The outermost first.
PUBLIC = [require_safe, vary_on_cookie, private_when_signed_in]
if settings.CACHING_VIEW_CACHE:
    PUBLIC.insert(1, cache_page(settings.CACHING_SECONDS))


@method_decorator(PUBLIC, name="dispatch")
class PublicPage(View):
    """A page for everybody, which the caching layers may store."""


class HomePage(PublicPage, TemplateView):
    """Ten parts, each of which can be cached by itself."""

    template_name = "home.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(home=Home(), ttl=settings.CACHING_SECONDS, **kwargs)


class ListPage(PublicPage, ListView):
    """A page of a list. Its number is in the path; the first page has only the URL without one."""

    paginate_by = PER_PAGE
    paginator_class = TablePaginator
    page_kwarg = "number"
    url_name = ""
    anchor = ""  # where in the page the list begins

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        # Said here, or Django takes the number from the query string.
        super().setup(request, *args, **{"number": 1, **kwargs})

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.path.endswith("/page/1/"):
            return redirect(request.path.removesuffix("page/1/"), permanent=True)
        return super().get(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        # The URL of the first page, which those of the others begin with.
        base = reverse(self.url_name, args=[self.kwargs["pk"]] if "pk" in self.kwargs else [])
        return super().get_context_data(base=base, anchor=self.anchor, **kwargs)


class AuthorList(ListPage):
    """All authors, the newest first."""

    model = Author
    template_name = "authors.html"
    url_name = "authors"


class PostList(ListPage):
    """All posts, the newest first."""

    model = Post
    queryset = Post.objects.select_related("author")
    template_name = "posts.html"
    url_name = "posts"


class CommentList(ListPage):
    """All comments, the newest first."""

    model = Comment
    queryset = Comment.objects.select_related("post")
    template_name = "comments.html"
    url_name = "comments"


class AuthorPage(ListPage):
    """An author with their posts, the newest first; 404 for an id that is not there."""

    template_name = "author.html"
    url_name = "author"
    anchor = "#posts"

    def get_queryset(self) -> QuerySet[Post]:
        self.author = get_object_or_404(Author, pk=self.kwargs["pk"])
        return self.author.posts.order_by("-id")

    def get_paginator(self, queryset: QuerySet[Post], per_page: int, **options: Any) -> Paginator:
        return ChildrenPaginator(queryset, per_page, self.author.post_count)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(author=self.author, **kwargs)


class PostPage(ListPage):
    """A post with its comments, the oldest first, and the comment form for a visitor who is logged in."""

    template_name = "post.html"
    url_name = "post"
    anchor = "#comments"
    form: CommentForm | None = None

    def get_queryset(self) -> QuerySet[Comment]:
        self.post_shown = get_object_or_404(Post.objects.select_related("author"), pk=self.kwargs["pk"])
        return self.post_shown.comments.order_by("id")

    def get_paginator(self, queryset: QuerySet[Comment], per_page: int, **options: Any) -> Paginator:
        return ChildrenPaginator(queryset, per_page, self.post_shown.comment_count)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        form = self.form or (CommentForm() if self.request.user.is_authenticated else None)
        return super().get_context_data(post=self.post_shown, form=form, **kwargs)


@require_POST
def comment(request: HttpRequest, pk: int) -> HttpResponse:
    """Save a comment and redirect to the page that shows it; an invalid form is shown again below the post."""
    post_url = reverse("post", args=[pk])
    if not request.user.is_authenticated:
        return redirect_to_login(post_url)
    post = get_object_or_404(Post, pk=pk)
    name = request.user.get_username()[: Comment._meta.get_field("name").max_length]
    form = CommentForm(request.POST, instance=Comment(post=post, author=request.user, name=name))
    if not form.is_valid():
        page = PostPage(form=form)
        page.setup(request, pk=pk)
        response = page.get(request)
        response.status_code = 422
        return response
    with transaction.atomic():
        new = form.save()
        number = _page_of_comment(new)
    return HttpResponseRedirect(f"{page_url(post_url, number)}#comment-{new.pk}")


def _page_of_comment(comment: Comment) -> int:
    """The number of the page of its post that shows a comment, oldest first.

    A new comment is the last one; those that others have written since are counted off the end.
    """
    total = Post.objects.values_list("comment_count", flat=True).get(pk=comment.post_id)
    later = Comment.objects.filter(post=comment.post_id, id__gt=comment.pk).count()
    return (total - later - 1) // PER_PAGE + 1


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


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The page for a malformed request, or one for a host that is not ours."""
    return _plain("400.html", 400)


def server_error(request: HttpRequest) -> HttpResponse:
    """The page for an internal error, or for a database that cannot be used now: no session, no context."""
    if not isinstance(sys.exc_info()[1], OperationalError):
        return _plain("500.html", 500)
    response = _plain("503.html", 503)
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response


def _plain(template: str, status: int) -> HttpResponse:
    return HttpResponse(loader.render_to_string(template), status=status)
