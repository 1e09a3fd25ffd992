"""Reasons for not storing a page, and allowed differences between a stored page and a rendered one."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace

import pytest

from bench.serve.machine.http import Sent
from bench.serve.project.description import Description
from bench.verify import hits
from bench.verify.checks import lasting, page_content
from bench.verify.checks.cached_responses import own_cookies
from bench.verify.checks.page_content import different_headers
from bench.verify.context import OWN_STATIC, judge_static
from bench.verify.expect import status
from bench.verify.hits import HTML, VARY_ALLOWED, obstacle, obstacle_here
from bench.verify.in_process import ExpectedPage
from bench.verify.mismatch import NotTried
from bench.verify.wire import PageResponse
from benchapp.caching import cacheability

LATER = "Sat, 01 Nov 2125 10:00:00 GMT"


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(page_content, "CLOCK_S", 0)


def page(body: str = "", **headers: str) -> PageResponse:
    given = {"Content_Type": "text/html; charset=utf-8"} | headers
    return PageResponse(
        200, "HTTP/1.1", tuple((name.replace("_", "-"), value) for name, value in given.items()), body.encode()
    )


NONCE = "it has a nonce, new for each visitor"
LATIN = "text/html; charset=iso-8859-1"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (page(), None),
        (page(Vary="Cookie, Accept-Encoding", Cache_Control="public, max-age=60"), None),
        (page(Vary="origin, HX-Request"), None),
        (page(Vary="Cookie, Accept-Language"), "it has Vary: accept-language"),
        (page(Vary="Cookie, Accept-Language", X_Cache="pass; vary"), "it has Vary: accept-language"),
        # The layer declares one page for each language.
        (page(Vary="Cookie, Accept-Language", X_Cache="miss"), None),
        (page(Vary="User-Agent, Accept-Language", X_Cache="miss"), "it has Vary: accept-language, user-agent"),
        (page(Vary="*"), "it has Vary: *"),
        (replace(page(), status=404), "its status is 404"),
        (page(Set_Cookie="csrftoken=x; Path=/"), "it sets the cookie csrftoken"),
        (page(Cache_Control="Private, max-age=60"), "its Cache-Control is Private, max-age=60"),
        (
            page(Cache_Control="private", X_Cache="pass; reads-cookie=theme"),
            "its Cache-Control is private, its X-Cache pass; reads-cookie=theme",
        ),
        (page(Cache_Control="max-age=59"), "its Cache-Control is max-age=59, and the layer stores for 60 s"),
        (page(Cache_Control="max-age=60"), None),
        (page(Cache_Control="max-age=0,s-maxage=90"), "its Cache-Control is max-age=0,s-maxage=90"),
        (page(Expires="0"), "its Expires is 0, and the layer stores for 60 s"),
        (page(Expires=LATER), None),
        (page(Content_Security_Policy="script-src 'nonce-abc'"), NONCE),
        (page("<p>a<script nonce=abc>1</script>"), NONCE),
        (page("<meta name=csp-nonce content=abc><p>a"), NONCE),
        (page("<meta http-equiv=Content-Security-Policy content=\"script-src 'nonce-abc'\"><p>a"), NONCE),
        (page("<p>a nonce=abc", Content_Security_Policy="default-src 'self'"), None),
        (page(Content_Type=LATIN), f"its Content-Type is {LATIN}"),
    ],
)
def test_what_stops_a_cache_is_named(given, why):
    assert obstacle(given, 60) == why


def response_at(path: str, **headers: str) -> PageResponse:
    return replace(page(**headers), sent=Sent("http://127.0.0.1:1", "GET", path))


@pytest.mark.parametrize(
    ("rendered", "headers", "why"),
    [
        (ExpectedPage(200, HTML, "", streams=True), {}, "it is streamed"),
        # A server in front may add the charset.
        (ExpectedPage(200, "text/html", ""), {}, "its Content-Type is text/html"),
        (ExpectedPage(200, HTML, ""), {}, None),
        # Every page has this header, each with another value.
        (
            ExpectedPage(200, HTML, ""),
            {"Content_Language": "en", "X_Cache": "pass; page-headers"},
            "not all pages have its Content-Language, and the layer stores only bodies",
        ),
        (ExpectedPage(200, HTML, ""), {"Content_Language": "en"}, None),
    ],
)
def test_what_stops_a_store_of_bodies_is_named(rendered, headers, why):
    site = SimpleNamespace(expected=lambda path: rendered, description=Description(health="/up/"))
    usual = page(**{name: value for name, value in headers.items() if name != "X_Cache"})
    context = SimpleNamespace(
        site=site,
        get=lambda path: usual,
        strict=False,
        layers=[SimpleNamespace(bodies=True)],
        time_to_live_s=60,
        running=None,
    )
    assert obstacle_here(context, response_at("/", **headers)) == why
    of_health = "it is named as the page of health checks, and not as public"
    assert obstacle_here(context, response_at("/up/", **headers)) == of_health


@pytest.mark.parametrize(
    ("stored", "rendered", "exact", "right"),
    [
        (["Cookie"], ["cookie"], True, True),
        (["Cookie"], [], True, False),
        (["Cookie"], [], False, True),
        (["Accept-Encoding, Cookie"], ["Accept-Encoding"], False, True),
        ([], ["Cookie"], False, False),
        (["Cookie"], ["Cookie, Accept-Language"], False, False),
        (["Cookie, Origin"], [], False, False),
    ],
)
def test_a_stored_page_loses_no_name_of_vary(stored, rendered, exact, right):
    kept, new = (page(Vary=", ".join(names)) for names in (stored, rendered))
    description = SimpleNamespace(reads_environment=exact)
    site = SimpleNamespace(description=description, expected=lambda path: ExpectedPage(200, "", ""))
    context = SimpleNamespace(get=lambda path: new, site=site)
    assert (list(different_headers(context, "/", kept, ["Vary"])) == []) == right


@pytest.mark.parametrize(
    ("vary", "x_cache", "right"),
    [
        ("Accept-Language", "hit", True),
        ("Accept-Language", "pass; content-type", True),
        ("Accept-Language", "pass; nonce", True),
        ("Accept-Language", "pass; vary", False),
        ("Cookie", "hit", False),
    ],
)
def test_a_page_that_is_stored_by_language_is_not_private_as_a_rendered_one_is(vary, x_cache, right):
    kept, new = page(Vary=vary, X_Cache=x_cache), page(Vary=vary, Cache_Control="private")
    description = SimpleNamespace(reads_environment=False)
    site = SimpleNamespace(description=description, expected=lambda path: ExpectedPage(200, "", ""))
    context = SimpleNamespace(get=lambda path: new, site=site)
    assert (list(different_headers(context, "/", kept)) == []) == right


@pytest.mark.parametrize(("rendered", "right"), [({"Set_Cookie": "a=1; Expires=2"}, True), ({}, False)])
def test_a_stored_page_has_a_cookie_if_a_rendered_one_sets_it_again(rendered, right):
    kept, new = page(Set_Cookie="a=1; Expires=1"), page(**rendered)
    description = SimpleNamespace(reads_environment=False)
    site = SimpleNamespace(description=description, expected=lambda path: ExpectedPage(200, "", ""))
    context = SimpleNamespace(get=lambda path: new, site=site)
    assert (list(different_headers(context, "/", kept)) == []) == right


def test_a_header_with_a_clock_is_no_difference_of_a_stored_page():
    seconds = itertools.count()
    site = SimpleNamespace(
        description=SimpleNamespace(reads_environment=False), expected=lambda path: ExpectedPage(200, HTML, "")
    )
    context = SimpleNamespace(get=lambda path: page(X_Second=str(next(seconds) // 2)), site=site)
    # The two renderings are of one second, and the third is of the next.
    assert list(different_headers(context, "/", page(X_Second="stored"))) == []
    context.get = lambda path: page(X_Second="always")
    assert len(list(different_headers(context, "/", page(X_Second="stored")))) == 1
    site.expected = lambda path: ExpectedPage(200, HTML, "", varying=frozenset(["x-second"]))
    assert list(different_headers(context, "/", page(X_Second="stored"))) == []


def test_a_page_varies_by_the_same_headers_here_and_in_the_layers():
    assert VARY_ALLOWED == cacheability.VARY_ALLOWED


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        (("0123456789abcdef", "fedcba9876543210", "0011223344556677"), 0),
        (("0123456789abcdef",) * 3, 1),
        # A short one is of no visitor, such as a language.
        (("en",) * 3, 1),
    ],
)
def test_a_short_cookie_of_the_site_is_that_of_no_visitor(values, wrong):
    lines = [("Set-Cookie", f"id={value}") for value in values]
    responses = iter(replace(page(), headers=(("Set-Cookie", "language=en"), line)) for line in lines)
    context = SimpleNamespace(get=lambda *_: next(responses))
    assert len(list(own_cookies(context, "/", {}))) == wrong


def test_a_project_without_public_pages_hears_which_key_names_them(monkeypatch):
    monkeypatch.setattr(hits, "worker_facts", lambda context: {"public": []})
    with pytest.raises(NotTried, match=r"\(public of \[tool\.benchapp\], or CACHING_PUBLIC\)"):
        list(lasting.not_public.run(SimpleNamespace(first=lambda _: page())))


@pytest.mark.parametrize(("rendered", "excuse"), [(301, OWN_STATIC), (404, "")])
def test_what_the_project_sends_below_its_static_files_is_not_the_stack_s(rendered, excuse):
    site = SimpleNamespace(has_database=True, rendered_now=lambda path: {path: ExpectedPage(rendered, "", "")})
    context = SimpleNamespace(get=lambda _: replace(page(), status=301), site=site)
    assert [item.excuse for item in judge_static(context, "/static/x.css", status(404))] == [excuse]
