"""Pages that no layer may share: each case on every layer that caches whole pages, inside and outside of Django."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable

import pytest
from django.contrib.sessions.backends.signed_cookies import SessionStore
from django.http import HttpRequest, HttpResponse
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware, get_token
from django.middleware.gzip import GZipMiddleware
from django.test import RequestFactory

from benchapp.caching.external.cacheable_header import MARK
from benchapp.caching.invalidation import StalePages, pages_invalidated
from benchapp.caching.watched import Reads, WatchedCookies
from tests.app.caching.layers import HTML, INSIDE, OUTSIDE, ActiveLayer, View, rendering

NONCE = "script-src 'nonce-abc'"


def begin_session(request: HttpRequest) -> None:
    request.session = SessionStore()
    request.session["seen"] = 1


def test_a_page_for_everybody_is_stored(layer: ActiveLayer):
    assert layer.stores(rendering())


@pytest.mark.parametrize(
    ("view", "request_"),
    [
        (rendering({"Cache-Control": "private"}), {}),
        (rendering(), {"QUERY_STRING": "a=1"}),
        (rendering(), {"headers": {"HX-Target": "made-up"}}),
        (rendering(), {"headers": {"cookie": "sessionid=x"}}),
        (rendering(), {"headers": {"host": "foreign.test"}}),
    ],
)
def test_what_the_rules_of_cacheability_forbid_is_stored_by_no_layer(layer: ActiveLayer, view: View, request_: dict):
    assert not layer.stores(view, **request_)


@pytest.mark.parametrize("headers", [{"HX-Request": "true"}, {"cookie": "sessionid=x"}, {"host": "foreign.test"}])
def test_a_cached_page_is_no_response_to_what_bypasses_the_cache(inside: ActiveLayer, headers: dict[str, str]):
    layered = inside.over(rendering())
    page, bypassing, again = (layered(RequestFactory().get("/a/", headers=sent)) for sent in ({}, headers, {}))
    assert page.content == again.content != bypassing.content


def test_a_browser_that_has_the_cached_page_gets_no_other_copy(active_layer: Callable):
    modified = "Sat, 01 Nov 2025 10:00:00 GMT"
    with active_layer("page-cache") as layer:
        view = layer.over(rendering({"ETag": '"a"', "Last-Modified": modified}))
        conditions = ({}, {"if-none-match": '"a"'}, {"if-none-match": '"b"'}, {"if-modified-since": modified})
        responses = [view(RequestFactory().get("/posts/5/", headers=condition)) for condition in conditions]
    assert [response.status_code for response in responses] == [200, 304, 200, 304]
    assert responses[2].content == responses[0].content


@pytest.mark.parametrize(
    ("reads", "stored"),
    [
        (lambda request: request.COOKIES.get("_ga"), False),
        (lambda request: request.COOKIES.get("utm_campaign"), False),
        (lambda request: request.COOKIES.get("sessionid"), True),
        (lambda request: request.COOKIES.get("csrftoken"), False),
        (lambda request: request.COOKIES.get("messages"), True),
        (lambda request: request.COOKIES.get("jwt"), False),
        (lambda request: "django_language" in request.COOKIES, False),
        (lambda request: request.COOKIES == {}, False),
        (lambda request: {**request.COOKIES}, False),
        (lambda request: bool(request.COOKIES), False),
        (lambda request: str(request.COOKIES), False),
        (lambda request: json.dumps(request.COOKIES), False),
        (lambda request: dict(request.COOKIES), False),
        (lambda request: request.COOKIES.copy(), False),
        (lambda request: request.COOKIES | {}, False),
        (lambda request: request.COOKIES.pop("theme", ""), False),
        (lambda request: request.COOKIES.setdefault("theme", "light"), False),
        (lambda request: request.META.get("HTTP_COOKIE"), False),
        (lambda request: request.headers.get("Cookie"), False),
        (lambda request: "User-Agent" in request.headers, False),
        (lambda request: request.META.get("HTTP_ACCEPT_LANGUAGE"), False),
        (lambda request: request.environ.get("HTTP_ACCEPT_LANGUAGE"), False),
        (lambda request: dict(request.headers), False),
        (lambda request: request.build_absolute_uri("/"), True),
        (lambda request: request.META.get("REMOTE_ADDR"), False),
        (lambda request: request.META["REMOTE_ADDR"] == "10.0.0.1", False),
        (lambda request: request.META.get("REMOTE_USER"), False),
        (lambda request: request.META.get("CSRF_COOKIE"), False),
        (lambda request: request.META.get("SERVER_NAME"), False),
        (lambda request: request.headers.get("HX-Target"), True),
        (get_token, False),
        (begin_session, False),
    ],
)
def test_what_a_page_reads_of_its_visitor(layer: ActiveLayer, reads: Callable, stored: bool):
    assert layer.stores(rendering(reads=reads)) is stored


@pytest.mark.parametrize(
    ("path", "stored"),
    [
        ("/", True),
        ("/blog/", True),
        ("/blog/7/", True),
        ("/blogs/", False),
        ("/shop/", False),
        ("/about", True),
        ("/caf\u00e9/", True),
    ],
)
def test_pages_outside_of_the_public_ones_are_private(layer: ActiveLayer, settings, path: str, stored: bool):
    settings.CACHING_PUBLIC = ["/", "/blog/", "/about", "/caf%C3%A9/?page=1"]
    response = layer.over(rendering())(RequestFactory().get(path))
    assert response.get("Cache-Control", "").startswith("private") is not stored
    assert layer.stores(rendering(), path) is stored


@pytest.mark.parametrize("headers", [{}, {"Cache-Control": "public, max-age=600"}])
def test_a_cached_page_has_the_lifetime_headers_of_its_view(active_layer: Callable, headers: dict[str, str]):
    with active_layer("page-cache") as layer:
        view = layer.over(rendering(headers))
        first, second = (view(RequestFactory().get("/posts/5/")) for _ in range(2))
    assert first.content == second.content
    for response in (first, second):
        assert {name: response[name] for name in ("Cache-Control", "Expires") if name in response} == headers


@pytest.mark.parametrize(
    ("reads", "names", "stored"),
    [
        (lambda request: request.get_host(), ["a.test", "b.test"], False),
        (lambda request: request.get_host(), [".test"], False),
        # One of its names is this machine's, for health checks.
        (lambda request: request.get_host(), ["a.test", "localhost"], True),
        (lambda request: request.build_absolute_uri(), ["a.test", "b.test"], False),
        (lambda request: request.build_absolute_uri(), ["a.test", "localhost"], True),
        (lambda request: request.build_absolute_uri("/a/"), ["b.test", ".test"], False),
        (lambda request: None, ["a.test", "b.test"], True),
    ],
)
def test_a_page_that_middleware_chooses_by_host_is_not_stored(
    layer: ActiveLayer, settings, reads: Callable, names: list[str], stored: bool
):
    def tenant(get_response: View) -> View:
        return lambda request: (reads(request), get_response(request))[1]

    settings.ALLOWED_HOSTS = names
    # Django's own middleware reads the host of each request, to check it.
    assert layer.stores(rendering(), projects=(CommonMiddleware, tenant), headers={"host": "a.test"}) is stored


@pytest.mark.parametrize(
    "reads",
    [
        lambda request: request.get_host(),
        lambda request: request.META["HTTP_HOST"],
        lambda request: request.META.get("HTTP_HOST", ""),
        lambda request: request.headers["Host"],
        lambda request: request.build_absolute_uri(),
        lambda request: [request.build_absolute_uri("a"), request.build_absolute_uri("/b/")],
    ],
)
def test_a_view_that_reads_the_host_by_whatever_way_is_not_stored(layer: ActiveLayer, settings, reads: Callable):
    settings.ALLOWED_HOSTS = ["a.test", "b.test"]
    view = rendering(reads=reads)
    assert not layer.stores(view, projects=(CommonMiddleware,), headers={"host": "a.test"})
    settings.ALLOWED_HOSTS = [".test"]
    assert not layer.stores(view, "/posts/6/", projects=(CommonMiddleware,), headers={"host": "a.test"})
    # A site with one name has one page, but none for another spelling, or for the name of this machine.
    settings.ALLOWED_HOSTS = ["a.test", "localhost"]
    for number, other in enumerate(("A.test", "a.test.", "a.test:80", "a.test:443", "a.test:81", "localhost")):
        assert not layer.stores(view, f"/{number}/", projects=(CommonMiddleware,), headers={"host": other}), other
    assert layer.stores(view, "/posts/7/", projects=(CommonMiddleware,), headers={"host": "a.test"})


def test_middleware_that_responds_by_host_itself_is_not_stored(layer: ActiveLayer, settings):
    settings.ALLOWED_HOSTS = ["a.test", "b.test"]

    def responses(get_response: View) -> View:
        return rendering(reads=lambda request: request.get_host())

    assert not layer.stores(rendering(), projects=(responses,), headers={"host": "a.test"})


def test_a_page_for_one_address_is_given_to_no_other(layer: ActiveLayer):
    def office(request: HttpRequest) -> HttpResponse:
        inside = request.META["REMOTE_ADDR"] == "10.0.0.9"
        return HttpResponse("<p>secret" if inside else "<p>no", HTML, status=200 if inside else 403)

    layered = layer.over(office)
    responses = [layered(RequestFactory().get("/office/", REMOTE_ADDR=address)) for address in ("10.0.0.9", "10.0.0.1")]
    assert [response.status_code for response in responses] == [200, 403]
    assert not any(response.has_header(MARK) for response in responses)


def test_the_middleware_of_tokens_reads_their_cookie_and_leaves_pages_shared(layer: ActiveLayer):
    cookie = {"cookie": f"csrftoken={'a' * 32}"}
    assert layer.stores(rendering(), projects=(CsrfViewMiddleware,), headers=cookie)
    shown = rendering(reads=lambda request: request.COOKIES.get("csrftoken"))
    assert not layer.stores(shown, "/b/", projects=(CsrfViewMiddleware,), headers=cookie)


def test_watched_cookies_are_a_dictionary_to_c_code():
    for cookies in ({}, {"theme": "dark"}):
        reads = Reads({}, frozenset())
        assert json.loads(json.dumps(WatchedCookies(cookies, reads))) == cookies
        assert "cookie:any" in reads.names
        assert dict(WatchedCookies(cookies, reads)) == cookies
        assert len(WatchedCookies(cookies, reads)) == len(cookies)
        copied = copy.copy(WatchedCookies(cookies, reads))
        assert json.loads(json.dumps(copied)) == cookies
        assert {**copied} == cookies


@pytest.mark.parametrize(
    "path", ["/about", "/blog/python-3.12/", "/blog/\u00fcber/", "/a b/", "/@x/", "/flat/one", "/a.html", "/\u4f60/x"]
)
def test_a_page_of_any_address_is_stored_and_invalidated(inside: ActiveLayer, path: str):
    layered = inside.over(rendering())

    def content() -> bytes:
        return layered(RequestFactory().get(path)).content

    for stale in (StalePages(frozenset({path})), StalePages(prefixes=frozenset({"/"}))):
        first = content()
        assert content() == first
        pages_invalidated.send(sender=StalePages, stale=stale)
        assert content() != first


def test_one_address_is_never_the_page_of_another(inside: ActiveLayer):
    paths = ["/", "/a", "/a/", "/a/b", "/a%2Fb/", "/a/b/", "/a.html", "/index.html", "/a//b/", "/a%20b/", "/a b/"]
    paths += ["/a/../b/", "/./b/", "/b/", "/b/."]
    layered = inside.over(lambda request: HttpResponse(f"<p>{request.path}", HTML))
    for path in [*paths, *paths]:
        request = RequestFactory().get("/")
        request.path = path
        assert layered(request).content.decode() == f"<p>{path}"


@pytest.mark.parametrize("name", INSIDE | OUTSIDE)
def test_a_project_that_compresses_its_pages_itself_has_them_stored(name: str, active_layer: Callable, settings):
    text = "<p>" + "words " * 100

    def view(request: HttpRequest) -> HttpResponse:
        rendered.append(request.META.get("HTTP_ACCEPT_ENCODING"))
        return HttpResponse(text, HTML)

    with active_layer(name) as layer:
        # A server that stores bodies sends it.
        settings.CACHING_PAGE_HEADERS = {"Vary": "Cookie, Accept-Encoding"}
        rendered: list[str | None] = []
        active_layer = layer.over(GZipMiddleware(view))
        for coding in ("gzip, br", "gzip", "identity", "gzip;q=1.0, deflate", ""):
            response = active_layer(RequestFactory().get("/posts/5/", headers={"accept-encoding": coding}))
            packed = response.get("Content-Encoding") == "gzip"
            assert not packed or "gzip" in coding
            assert (gzip.decompress(response.content) if packed else response.content).decode() == text
            assert MARK in response or name in INSIDE
        if name in INSIDE:
            assert len(rendered) == (2 if name == "page-cache" else 1), "one for each coding that is stored"
