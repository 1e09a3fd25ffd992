"""What no layer may share: each case on every layer that caches whole pages, inside and outside of Django."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable

import pytest
from django.contrib.sessions.backends.signed_cookies import SessionStore
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import get_token
from django.middleware.gzip import GZipMiddleware
from django.test import RequestFactory

from benchapp.caching.invalidation import StalePages, pages_invalidated
from benchapp.caching.outside.marks import MARK
from benchapp.caching.reads import WatchedCookies
from tests.app.caching.layers import HTML, INSIDE, OUTSIDE, Laid, View, rendering

NONCE = "script-src 'nonce-abc'"


def begin_session(request: HttpRequest) -> None:
    request.session = SessionStore()
    request.session["seen"] = 1


def test_a_page_for_everybody_is_stored(layer: Laid):
    assert layer.stores(rendering())


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Security-Policy": NONCE},
        {"Content-Security-Policy-Report-Only": NONCE},
        {"Content-Security-Policy": "script-src 'Nonce-abc'"},
        {"Vary": "Accept-Language"},
        {"Cache-Control": "private"},
        {"Cache-Control": "public, max-age=59"},
        {"Set-Cookie": "a=b"},
        {"Content-Type": "application/json", "Cache-Control": "max-age=600"},
    ],
)
def test_a_page_with_such_headers_is_not_stored(layer: Laid, headers: dict[str, str]):
    assert not layer.stores(rendering(headers))


@pytest.mark.parametrize("status", [201, 204, 206, 302, 304, 404, 500])
def test_only_status_200_is_stored_whatever_lifetime_the_answer_names(layer: Laid, status: int):
    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse("x", HTML, status=status, headers={"Cache-Control": "max-age=600"})

    answer = layer.over(view)(RequestFactory().get("/posts/5/"))
    assert MARK not in answer and "s-maxage" not in answer["Cache-Control"]
    assert layer.over(rendering())(RequestFactory().get("/posts/5/")).status_code == 200


@pytest.mark.parametrize(
    "tag",
    [
        b"<script async nonce='abc'></script>",
        b"<meta http-equiv='Content-Security-Policy' content=\"script-src 'nonce-abc'\">",
        b"<meta http-equiv='Content-Security-Policy' content='script-src &#x27;nonce-abc&#x27;'>",
        b"<meta name='csp-nonce' content='abc'>",
    ],
)
def test_a_nonce_that_middleware_further_out_puts_into_the_policy_is_seen_in_the_page(layer: Laid, tag: bytes):
    render = rendering()

    def view(request: HttpRequest) -> HttpResponse:
        page = render(request)
        page.content += b"words " * 100 + tag
        return page

    assert not layer.stores(view)
    # In a tag of the page a project may have its policy, too.
    assert not layer.stores(GZipMiddleware(view), headers={"accept-encoding": "gzip"})


def test_a_page_that_is_not_coded_as_it_says_is_not_stored_and_no_error(layer: Laid):
    # Middleware that minifies pages may change the bytes of one that its view has compressed.
    packed = gzip.compress(b"<p>page")
    for body in (b"<p>page", packed[:-4], packed[:12] + b"\xff" + packed[13:]):
        view = rendering({"Content-Encoding": "gzip"})

        def changed(request: HttpRequest, view: View = view, body: bytes = body) -> HttpResponse:
            page = view(request)
            page.content = body
            return page

        answer = layer.over(changed)(RequestFactory().get("/posts/5/", headers={"accept-encoding": "gzip"}))
        assert answer.status_code == 200 and MARK not in answer


def test_a_page_that_was_asked_for_with_a_body_is_not_stored(layer: Laid):
    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse(b"<p>" + request.body, HTML)

    laid = layer.over(view)
    for _ in range(2):
        answer = laid(RequestFactory().generic("GET", "/posts/5/", b"poison"))
        assert answer.content == b"<p>poison" and MARK not in answer
    assert laid(RequestFactory().get("/posts/5/")).content == b"<p>"


@pytest.mark.parametrize("name", ["site-middleware", "view-cache"])
def test_a_browser_that_has_the_cached_page_gets_no_other_copy(laid: Callable, name: str):
    modified = "Sat, 01 Nov 2025 10:00:00 GMT"
    with laid(name) as layer:
        view = layer.over(rendering({"ETag": '"a"', "Last-Modified": modified}))
        conditions = ({}, {"if-none-match": '"a"'}, {"if-none-match": '"b"'}, {"if-modified-since": modified})
        answers = [view(RequestFactory().get("/posts/5/", headers=condition)) for condition in conditions]
    assert [answer.status_code for answer in answers] == [200, 304, 200, 304]
    assert answers[2].content == answers[0].content


def test_a_nonce_that_a_fragment_has_stored_is_said(laid: Callable, caplog):
    def over(nonce: str, policy: str) -> View:
        page = f"<p>{'words ' * 100}<script async nonce={nonce}></script>"
        return GZipMiddleware(lambda request: HttpResponse(page, HTML, headers={"Content-Security-Policy": policy}))

    with laid("fragments") as layer:
        for nonce, policy in (("'abc'", NONCE), ("abc", NONCE), ("'abc'", "script-src 'self'")):
            layer.over(over(nonce, policy))(RequestFactory().get("/", headers={"accept-encoding": "gzip"}))
        assert not caplog.records
        layer.over(over('"old"', NONCE))(RequestFactory().get("/posts/5/", headers={"accept-encoding": "gzip"}))
    assert caplog.messages[0].startswith("/posts/5/: a nonce")


@pytest.mark.parametrize("name", ["HX-Request", "X-Requested-With", "Origin", "Authorization"])
def test_a_part_of_a_page_is_neither_stored_nor_is_the_page_the_answer(layer: Laid, name: str):
    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse("<p>part" if name in request.headers else "<p>page", HTML)

    laid, factory = layer.over(view), RequestFactory()
    for headers, text in (
        ({name: "true"}, b"<p>part"),
        ({}, b"<p>page"),
        ({name: "true"}, b"<p>part"),
        ({}, b"<p>page"),
    ):
        answer = laid(factory.get("/posts/5/", headers=headers))
        assert answer.content == text
        assert not (headers and MARK in answer)


@pytest.mark.parametrize("name", ["HX-Target", "HX-Current-URL"])
def test_a_made_up_header_of_htmx_is_shown_to_nobody_else(layer: Laid, name: str):
    laid = layer.over(lambda request: HttpResponse(f"<p>{request.headers.get(name)}", HTML))
    answer = laid(RequestFactory().get("/posts/5/", headers={name: "made-up"}))
    assert MARK not in answer
    assert laid(RequestFactory().get("/posts/5/")).content == b"<p>None"


@pytest.mark.parametrize(
    ("cookie", "shared"),
    [("_ga=1.2.3", True), ("csrftoken=" + "a" * 32, True), ("a=b; _pk=c; x", True), ("sessionid=x", False)],
)
def test_only_a_session_keeps_a_visitor_from_the_page_of_all(inside: Laid, cookie: str, shared: bool):
    laid = inside.over(rendering())
    first = laid(RequestFactory().get("/posts/5/", headers={"cookie": cookie})).content
    second = laid(RequestFactory().get("/posts/5/")).content
    third = laid(RequestFactory().get("/posts/5/", headers={"cookie": cookie})).content
    assert [first == second, second == third] == [shared, shared]


@pytest.mark.parametrize("public", [[], ["/posts/"]])
@pytest.mark.parametrize(
    ("reads", "stored"),
    [
        (lambda request: request.COOKIES.get("_ga"), True),
        (lambda request: request.COOKIES.get("_gat_UA-1") or request.COOKIES.get("_fbp"), True),
        (lambda request: request.COOKIES.get("sessionid"), True),
        (lambda request: request.COOKIES.get("csrftoken"), True),
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
        (lambda request: request.META.get("REMOTE_ADDR"), True),
        (lambda request: request.headers.get("HX-Target"), True),
        (get_token, False),
        (begin_session, False),
    ],
)
def test_what_a_page_reads_of_its_visitor(layer: Laid, settings, public: list[str], reads: Callable, stored: bool):
    settings.CACHING_PUBLIC = public
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
def test_pages_outside_of_the_public_ones_are_private(layer: Laid, settings, path: str, stored: bool):
    settings.CACHING_PUBLIC = ["/", "/blog/", "/about", "/caf%C3%A9/?page=1"]
    answer = layer.over(rendering())(RequestFactory().get(path))
    assert answer.get("Cache-Control", "").startswith("private") is not stored
    # That a view is cached says the view itself.
    assert layer.name == "view-cache" or layer.stores(rendering(), path) is stored


def test_a_stream_is_not_stored(layer: Laid):
    render = rendering()
    assert not layer.stores(lambda request: StreamingHttpResponse([render(request).content], content_type=HTML))


def test_a_page_says_which_cookie_or_header_keeps_it_out(layer: Laid):
    def said(reads: Callable) -> str | None:
        return layer.over(rendering(reads=reads))(RequestFactory().get("/posts/5/")).get("Cache-Control", "")

    assert said(lambda request: request.COOKIES.get("theme")) == "private, reads-cookie=theme"
    assert said(lambda request: request.headers.get("Accept-Language")) == "private, reads-header=accept-language"


@pytest.mark.parametrize("name", ["site-middleware", "view-cache"])
@pytest.mark.parametrize("said", [{}, {"Cache-Control": "public, max-age=600"}])
def test_a_cached_page_has_the_lifetime_headers_of_its_view(laid: Callable, name: str, said: dict[str, str]):
    with laid(name) as layer:
        view = layer.over(rendering(said))
        first, second = (view(RequestFactory().get("/posts/5/")) for _ in range(2))
    assert first.content == second.content
    for answer in (first, second):
        assert {name: answer[name] for name in ("Cache-Control", "Expires") if name in answer} == said


@pytest.mark.parametrize("host", ["testserver", "testserver:80", "testserver:443", "testserver:8123"])
def test_a_made_up_port_is_not_stored_in_addresses(layer: Laid, settings, host: str):
    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse(f"<a href='{request.build_absolute_uri('/')}'>home</a>", HTML)

    settings.CACHING_PORT = "8123"
    assert layer.stores(view, headers={"host": host})
    laid = layer.over(view)
    # mod_wsgi takes the server's port from Host, too.
    laid(RequestFactory().get("/posts/6/", headers={"host": "testserver:1"}, SERVER_PORT="1"))
    assert b":1/" not in laid(RequestFactory().get("/posts/6/")).content


def test_a_cached_page_does_not_answer_a_foreign_host(inside: Laid, settings):
    settings.ALLOWED_HOSTS = ["ours.test"]
    laid = inside.over(rendering())
    hosts = ("ours.test", "foreign.test", "ours.test")
    first, foreign, again = (laid(RequestFactory().get("/a/", headers={"host": host})).content for host in hosts)
    assert first == again != foreign


@pytest.mark.parametrize(
    ("reads", "names", "stored"),
    [
        (lambda request: request.get_host(), ["a.test", "b.test"], False),
        (lambda request: request.get_host(), [".test"], False),
        # One of its names is this machine's, for health checks.
        (lambda request: request.get_host(), ["a.test", "localhost"], True),
        (lambda request: request.build_absolute_uri(), ["a.test", "b.test"], True),
    ],
)
def test_a_page_that_middleware_chooses_by_host_is_not_stored(
    layer: Laid, settings, reads: Callable, names: list[str], stored: bool
):
    def tenant(get_response: View) -> View:
        return lambda request: (reads(request), get_response(request))[1]

    settings.ALLOWED_HOSTS = names
    # Django's own middleware asks for the host of each request, to check it. A cached view is inside of all middleware.
    projects = () if layer.name == "view-cache" else (CommonMiddleware, tenant)
    view = tenant(rendering()) if layer.name == "view-cache" else rendering()
    assert layer.stores(view, projects=projects, headers={"host": "a.test"}) is stored


def test_watched_cookies_are_a_dictionary_to_c_code():
    for cookies in ({}, {"theme": "dark"}):
        read: set[str] = set()
        assert json.loads(json.dumps(WatchedCookies(cookies, read))) == cookies
        assert "any" in read
        assert dict(WatchedCookies(cookies, set())) == cookies
        assert len(WatchedCookies(cookies, set())) == len(cookies)


@pytest.mark.parametrize(
    "path", ["/about", "/blog/python-3.12/", "/blog/\u00fcber/", "/a b/", "/@x/", "/flat/one", "/a.html", "/\u4f60/x"]
)
def test_a_page_of_any_address_is_stored_and_invalidated(inside: Laid, path: str):
    laid = inside.over(rendering())

    def ask() -> bytes:
        return laid(RequestFactory().get(path)).content

    for stale in (StalePages(frozenset({path})), StalePages(prefixes=frozenset({"/"}))):
        first = ask()
        assert ask() == first
        pages_invalidated.send(sender=StalePages, stale=stale)
        assert ask() != first


def test_one_address_is_never_the_page_of_another(inside: Laid):
    paths = ["/", "/a", "/a/", "/a/b", "/a%2Fb/", "/a/b/", "/a.html", "/index.html", "/a//b/", "/a%20b/", "/a b/"]
    paths += ["/a/../b/", "/./b/", "/b/", "/b/."]
    laid = inside.over(lambda request: HttpResponse(f"<p>{request.path}", HTML))
    for path in [*paths, *paths]:
        request = RequestFactory().get("/")
        request.path = path
        assert laid(request).content.decode() == f"<p>{path}"


@pytest.mark.parametrize("name", [name for name in INSIDE | OUTSIDE if name != "view-cache"])
def test_a_project_that_compresses_its_pages_itself_has_them_stored(name: str, laid: Callable, settings):
    text = "<p>" + "words " * 100

    def view(request: HttpRequest) -> HttpResponse:
        rendered.append(request.META.get("HTTP_ACCEPT_ENCODING"))
        return HttpResponse(text, HTML)

    with laid(name) as layer:
        # A server that stores bodies sends it.
        settings.CACHING_PAGE_HEADERS = {"Vary": "Cookie, Accept-Encoding"}
        rendered: list[str | None] = []
        laid = layer.over(GZipMiddleware(view))
        for coding in ("gzip, br", "gzip", "identity", "gzip;q=1.0, deflate", ""):
            answer = laid(RequestFactory().get("/posts/5/", headers={"accept-encoding": coding}))
            packed = answer.get("Content-Encoding") == "gzip"
            assert not packed or "gzip" in coding
            assert (gzip.decompress(answer.content) if packed else answer.content).decode() == text
            assert MARK in answer or name in INSIDE
        if name in INSIDE:
            assert len(rendered) == (2 if name == "site-middleware" else 1), "one for each coding that is stored"
