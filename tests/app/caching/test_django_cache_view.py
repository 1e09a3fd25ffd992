"""The layer `view-cache`: it does not cache a page that middleware further out will give a cookie."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from django.contrib.sessions.backends.signed_cookies import SessionStore
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.test import RequestFactory

from benchapp.caching.django_cache import cache_public_page
from benchapp.caching.rendering import render_id

HTML = "text/html; charset=utf-8"


@pytest.fixture(autouse=True)
def layer(site_with: Callable[..., AbstractContextManager[None]]) -> Iterator[None]:
    with site_with(CACHING_VIEW_CACHE="1"):
        cache.clear()
        yield
        cache.clear()


def begin_session(request: HttpRequest) -> None:
    request.session["seen"] = 1


def ask(view: Callable[[HttpRequest], HttpResponse], path: str) -> HttpResponse:
    request = RequestFactory().get(path)
    request.session = SessionStore()
    return cache_public_page(render_id(view))(request)


@pytest.mark.parametrize(("does", "cached"), [(get_token, False), (begin_session, False), (lambda request: None, True)])
def test_a_view_that_used_a_token_or_wrote_to_the_session_is_not_cached(does: Callable, cached: bool):
    def view(request: HttpRequest) -> HttpResponse:
        does(request)
        return HttpResponse("<p>A page", HTML)

    names = {ask(view, "/posts/")["X-Render-Id"] for _ in range(2)}
    assert len(names) == (1 if cached else 2)


@pytest.mark.parametrize("said", [{}, {"Cache-Control": "public, max-age=600"}])
def test_a_cached_page_has_the_lifetime_headers_of_its_view(said: dict[str, str]):
    answers = [ask(lambda request: HttpResponse("<p>A page", HTML, headers=said), "/posts/") for _ in range(2)]
    assert answers[0]["X-Render-Id"] == answers[1]["X-Render-Id"]
    for answer in answers:
        assert {name: answer[name] for name in ("Cache-Control", "Expires") if name in answer} == said
