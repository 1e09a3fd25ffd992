"""Pages of the site: Django's generic views between pagination, forms and templates."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.core.paginator import Paginator
from django.db import InterfaceError, OperationalError, connection
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template import loader
from django.templatetags.static import static
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.utils.decorators import method_decorator
from django.views.decorators.cache import cache_page, never_cache
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_cookie
from django.views.generic import ListView, TemplateView, View

from benchapp.forms import MAX_COMMENT, CommentForm
from benchapp.home import Home
from benchapp.models import Author, Comment, Post
from benchapp.pagination import PER_PAGE, ChildrenPaginator, TablePaginator, page_url

# When visitors, and programs that read the header, are to come back while the database cannot be used.
RETRY_AFTER_S = 5
# Errors of a database that cannot be used now; the second is that of a connection that is closed already.
UNUSABLE = (OperationalError, InterfaceError)
DRAFT = "comment_draft"  # in the session: a comment that its visitor must log in for
PAGE_NUMBER = re.compile(r"[1-9][0-9]{0,17}")


def private_when_signed_in(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """The view, with private pages for signed-in visitors: these name the visitor and hold a CSRF token."""

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
    """A page for everybody, open to the caching layers."""


class HomePage(PublicPage, TemplateView):
    """Ten parts, each cached separately under the layer `fragments`."""

    template_name = "home.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(home=Home(), ttl=settings.CACHING_SECONDS, **kwargs)


class ListPage(ListView):
    """A page of a list. The page number is in the path; the first page has only the URL without a number."""

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
        return super().get_context_data(base=self.base_url, anchor=self.anchor, **kwargs)

    @property
    def base_url(self) -> str:
        """The URL of the first page, with which all others begin."""
        return reverse(self.url_name, args=[self.kwargs["pk"]] if "pk" in self.kwargs else [])


class AuthorList(PublicPage, ListPage):
    """All authors, the newest first."""

    model = Author
    template_name = "authors.html"
    url_name = "authors"


class PostList(PublicPage, ListPage):
    """All posts, the newest first."""

    model = Post
    queryset = Post.objects.select_related("author")
    template_name = "posts.html"
    url_name = "posts"


class CommentList(PublicPage, ListPage):
    """All comments, the newest first."""

    model = Comment
    queryset = Comment.objects.select_related("post").defer("post__body")
    template_name = "comments.html"
    url_name = "comments"


class AuthorPage(PublicPage, ListPage):
    """An author with their posts, the newest first; 404 for an unknown id."""

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


class PostWithComments(ListPage):
    """A post with its comments, the oldest first, and the comment form for a visitor who is logged in."""

    template_name = "post.html"
    url_name = "post"
    anchor = "#comments"

    def get_queryset(self) -> QuerySet[Comment]:
        self.post_shown = get_object_or_404(Post.objects.select_related("author"), pk=self.kwargs["pk"])
        return self.post_shown.comments.order_by("id")

    def get_paginator(self, queryset: QuerySet[Comment], per_page: int, **options: Any) -> Paginator:
        return ChildrenPaginator(queryset, per_page, self.post_shown.comment_count)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        if "form" not in kwargs and self.request.user.is_authenticated:
            kwargs["form"] = CommentForm(initial=self.draft())
        return super().get_context_data(post=self.post_shown, **kwargs)

    def draft(self) -> dict[str, Any]:
        """The comment on this post from before the visitor's login; else empty."""
        draft = self.request.session.get(DRAFT, {})
        return draft if draft.get("post") == self.kwargs["pk"] else {}


class PostPage(PublicPage, PostWithComments):
    """A post as everybody reads it; 404 for an unknown id."""


class WriteComment(PostWithComments):
    """Save a comment and redirect to it; show an invalid form again below the post.

    A browser keeps this address beside an invalid form, so a GET leads to the form on the post's own page.
    """

    http_method_names = ["get", "head", "post"]

    def get(self, request: HttpRequest, pk: int) -> HttpResponse:
        return redirect(_write_url(get_object_or_404(Post, pk=pk)))

    def post(self, request: HttpRequest, pk: int) -> HttpResponse:
        post = get_object_or_404(Post, pk=pk)
        if not request.user.is_authenticated:
            self.keep_draft()
            return redirect_to_login(_write_url(post))

        name = request.user.get_username()[: Comment._meta.get_field("name").max_length]
        form = CommentForm(request.POST, instance=Comment(post=post, user=request.user, name=name))
        if form.is_valid():
            comment = form.save()
            if self.draft():
                del request.session[DRAFT]
            messages.success(request, "Your comment was posted.")
            return redirect(comment)

        self.object_list = self.get_queryset()
        return self.render_to_response(self.get_context_data(form=form), status=422)

    def keep_draft(self) -> None:
        """Keep the text and the rating in the session until the comment is posted; a visitor has one draft."""
        # Browsers send a line break as two characters.
        body = self.request.POST.get("body", "")[: 2 * MAX_COMMENT]
        rating = self.request.POST.get("rating", "")[:1]
        if body.strip():
            self.request.session[DRAFT] = {"post": self.kwargs["pk"], "body": body, "rating": rating}


def _write_url(post: Post) -> str:
    """The place in the page of a post where comments are written."""
    return f"{post.get_absolute_url()}#write"


class Jump(View):
    """Redirect a page number from the form (`?page=7`) to the URL of the page, or of the last page."""

    http_method_names = ["get", "head"]
    list_page: type[ListPage] = ListPage

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        number = request.GET.get("page", "").strip()
        if not PAGE_NUMBER.fullmatch(number):
            raise Http404("not a page number")

        pages = self.list_page()
        pages.setup(request, **kwargs)
        last = pages.get_paginator(pages.get_queryset(), pages.paginate_by).num_pages
        return redirect(page_url(pages.base_url, min(int(number), last)))


class Robots(TemplateView):
    """Paths that crawlers leave out (RFC 9309)."""

    template_name = "robots.txt"
    content_type = "text/plain; charset=utf-8"


@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    """Redirect clients that request an icon without reading a page."""
    return redirect(static("favicon.ico"))


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Health check of the process, without database and cache."""
    return HttpResponse("ok\n", content_type="text/plain; charset=utf-8")


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Readiness: 503 while the database cannot be used."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except UNUSABLE:
        response = HttpResponse("no database\n", content_type="text/plain; charset=utf-8", status=503)
        response.headers["Retry-After"] = str(RETRY_AFTER_S)
        return response
    return HttpResponse("ok\n", content_type="text/plain; charset=utf-8")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The page for a malformed request, or one for a host that is not ours."""
    return _plain("400.html", 400)


def server_error(request: HttpRequest) -> HttpResponse:
    """The page for an internal error, or for an unusable database: no session, no context."""
    # Django calls this while it handles the exception, and does not hand it over.
    if not isinstance(sys.exception(), UNUSABLE):
        return _plain("500.html", 500)
    response = _plain("503.html", 503)
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response


def _plain(template: str, status: int) -> HttpResponse:
    return HttpResponse(loader.render_to_string(template), status=status)
