"""The requests that a shared cache may serve, and the responses that it may store."""

from __future__ import annotations

import gzip

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.test import RequestFactory
from django.utils.http import http_date

from benchapp.caching.cacheability import has_only_common_headers, may_serve, may_store, may_store_for
from benchapp.caching.hosts import is_own_host, is_own_scheme

PROXIES: dict[str, object] = {
    "BENCHAPP_BEHIND_PROXY": True,
    "SECURE_PROXY_SSL_HEADER": ("HTTP_X_FORWARDED_PROTO", "https"),
    "USE_X_FORWARDED_HOST": True,
}
BALANCED = {"BENCHAPP_TRUSTED_PROXIES": ["10.0.0.0/8"], "CACHING_PORT": "8443"}
LATER = http_date(4_000_000_000)


@pytest.mark.parametrize(
    ("headers", "forbidden"),
    [
        ({}, False),
        ({"Cache-Control": "public, max-age=60"}, False),
        ({"Cache-Control": "max-age=59"}, True),
        ({"Cache-Control": 'max-age="60"'}, False),
        ({"Cache-Control": "max-age='60'"}, True),
        ({"Cache-Control": "max-age=soon"}, True),
        ({"Cache-Control": "max-age=-5"}, True),
        ({"Cache-Control": "max-age=5, s-maxage=600"}, False),
        ({"Cache-Control": "max-age=600, S-MaxAge=5"}, True),
        ({"Cache-Control": "max-age=600, must-revalidate"}, True),
        ({"Cache-Control": "Proxy-Revalidate"}, True),
        ({"Expires": LATER}, False),
        ({"Expires": http_date(0)}, True),
        ({"Expires": "0"}, True),
        ({"Expires": http_date(0), "Cache-Control": "max-age=600"}, False),
        ({"Age": "1", "Cache-Control": "max-age=600"}, True),
        *(
            ({"Cache-Control": value}, True)
            for value in (
                "private",
                "max-age=60, PRIVATE",
                "No-Store",
                "no-cache",
                'private="Set-Cookie, X"',
                "max-age = 0",
                "s-maxage=0",
            )
        ),
        *(({"Vary": value}, value not in ("Cookie", "cookie")) for value in ("Cookie", "cookie", "*", "Cookie , *")),
        *(({"Content-Type": value}, False) for value in ("text/html;charset=UTF-8", "Text/HTML; charset=utf-8")),
        *(({"Content-Type": f"text/{value}"}, True) for value in ("plain; charset=utf-8", "html; charset=latin-1")),
        *(({f"Content-Security-Policy{kind}": "script-src 'Nonce-abc'"}, True) for kind in ("", "-Report-Only")),
        *(
            ({name: "no-store"}, True)
            for name in ("Surrogate-Control", "CDN-Cache-Control", "cloudflare-cdn-cache-control")
        ),
        *(({name: "max-age=600"}, False) for name in ("Surrogate-Control", "CDN-Cache-Control")),
        ({"CDN-Cache-Control": "Private", "Cache-Control": "public"}, True),
        ({"Pragma": "no-cache"}, True),
        ({"Pragma": "no-cache", "Cache-Control": "max-age=600"}, False),
        ({"Clear-Site-Data": '"cache"'}, True),
        ({"X-Accel-Expires": "0"}, True),
        ({"Content-Encoding": "gzip"}, True),
        ({"Set-Cookie": "a=b"}, True),
    ],
)
def test_headers_that_forbid_storing(headers: dict[str, str], forbidden: bool, settings):
    settings.CACHING_SECONDS = 60
    response = HttpResponse("a page", headers=headers)
    assert may_store(RequestFactory().get("/"), response) is not forbidden


class TwoLinesOfVary(HttpResponse):
    def items(self):
        return [*super().items(), ("Vary", "Cookie"), ("vary", "*")]


class CookieInALine(HttpResponse):
    def items(self):
        return [*super().items(), ("set-cookie", "visit=a")]


@pytest.mark.parametrize(
    "response",
    [
        *(HttpResponse("x", status=status) for status in (201, 204, 206, 302, 304, 404, 500)),
        StreamingHttpResponse([b"a page"]),
        TwoLinesOfVary("a page"),
        CookieInALine("a page"),
    ],
)
def test_other_responses_are_not_stored(response: HttpResponse):
    assert not may_store(RequestFactory().get("/"), response)


PACKED = gzip.compress(b"<p>page", mtime=0)


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (b"<script async nonce='abc'></script>", ""),
        (b"<meta http-equiv='Content-Security-Policy' content=\"script-src 'nonce-abc'\">", ""),
        (b"<meta http-equiv='Content-Security-Policy' content='script-src &#x27;nonce-abc&#x27;'>", ""),
        (b"<meta name='csp-nonce' content='abc'>", ""),
        (b"<my-widget nonce='abc'></my-widget>", ""),
        (b"<app-root ngCspNonce='abc'></app-root>", ""),
        (gzip.compress(b"<script nonce=abc>", mtime=0), "gzip"),
        # Middleware that minifies pages may change the bytes of one that its view has compressed.
        *((body, "gzip") for body in (b"<p>page", PACKED[:-4], PACKED[:12] + b"\xff" + PACKED[13:])),
    ],
)
def test_a_nonce_in_the_page_or_one_that_cannot_be_read_forbids_storing(body: bytes, coding: str):
    response = HttpResponse(body, headers={"Content-Encoding": coding} if coding else {})
    assert not may_store(RequestFactory().get("/"), response, coding)
    response.content = PACKED if coding else b"<p>page"
    assert may_store(RequestFactory().get("/"), response, coding)


def test_a_page_that_has_read_its_nonce_is_not_stored_however_it_spells_it():
    request, response = RequestFactory().get("/"), HttpResponse('<meta name="htmx-config" content="abc">')
    request._csp_nonce = ""
    assert may_store(request, response)
    request._csp_nonce = "abc"
    assert not may_store(request, response)


@pytest.mark.parametrize(
    ("request_", "served", "stored"),
    [
        ({}, True, True),
        *(({name: "x"}, False, False) for name in ("HX-Request", "X-Requested-With", "Origin", "Authorization")),
        *(({name: "x"}, True, False) for name in ("HX-Target", "HX-Current-URL")),
        *(({"cookie": value}, True, True) for value in ("_ga=1.2.3", "csrftoken=a", "a=b; _pk=c; x")),
        ({"cookie": "a=b; sessionid=x"}, False, False),
        ({"host": "foreign.test"}, False, False),
        # A made-up port would stand in the addresses of the page.
        *(({"host": f"testserver:{port}"}, True, stored) for port, stored in ((80, False), (8123, True), (1, False))),
        *(({"host": host}, True, False) for host in ("TestServer:8123", "testserver.:8123")),
        ({"content-type": "text/html"}, False, False),
        ({"content-length": "1"}, True, False),
        ({"transfer-encoding": "chunked"}, True, False),
    ],
)
def test_requests_that_a_cached_page_serves_and_whose_page_is_stored(
    settings, request_: dict[str, str], served: bool, stored: bool
):
    settings.CACHING_PORT = "8123"
    request = RequestFactory().get("/", headers=request_)
    assert (may_serve(request), may_store_for(request)) == (served, stored)
    assert not may_serve(RequestFactory().get("/?a=1"))


def test_a_page_has_every_header_of_all_pages_and_no_other_if_only_a_body_is_stored(settings):
    def stored(**changes: str | None) -> bool:
        headers = {"X-Frame-Options": "DENY", "Content-Security-Policy": "default-src 'self'", "Vary": "Cookie"}
        by_name = {name.replace("_", "-"): value for name, value in {**headers, **changes}.items()}
        given = {name: value for name, value in by_name.items() if value is not None}
        return has_only_common_headers(HttpResponse("x", headers=given))

    settings.X_FRAME_OPTIONS = "DENY"
    assert not stored(), "a header that other pages lack"
    everywhere = {"X-Frame-Options": "DENY", "Content-Security-Policy": "default-src 'self'", "Vary": "Cookie"}
    settings.CACHING_PAGE_HEADERS = everywhere | {"X-Content-Type-Options": "nosniff"}
    # The last is added further out, and HSTS over HTTPS only.
    assert stored() and stored(Strict_Transport_Security="max-age=60")
    assert not stored(X_Own="1")
    settings.CACHING_PAGE_HEADERS = everywhere
    for name in ("X-Frame-Options", "Content-Security-Policy"):
        assert not stored(**{name: None}), f"{name} was taken off"
        assert not stored(**{name: "other"})


@pytest.mark.parametrize(
    ("changes", "host", "shown", "stored"),
    [
        # Without CACHING_PORT it is the server's own port, here 8000.
        ({}, "testserver:8000", True, True),
        ({}, "testserver", False, True),
        *(({}, f"testserver:{port}", False, False) for port in (80, 443, 81)),
        *(({"CACHING_PORT": port}, "testserver", True, True) for port in ("80", "443", 443)),
        *(({"CACHING_PORT": "443"}, f"testserver:{port}", False, False) for port in (80, 443, 8000)),
        ({"CACHING_PORT": "8443"}, "testserver:8443", True, True),
        ({"CACHING_PORT": "8443"}, "testserver", False, True),
        # Behind a proxy the server's port is no visitor's, and behind a balancer not even that of the proxy.
        *(({name: value}, "testserver", True, True) for name, value in PROXIES.items()),
        *(({name: value}, "testserver:8000", False, False) for name, value in PROXIES.items()),
        (BALANCED, "testserver", True, True),
        (BALANCED, "testserver:8443", False, True),
        ({"ALLOWED_HOSTS": ["localhost", "127.0.0.1"]}, "localhost:8000", True, True),
        ({"ALLOWED_HOSTS": ["localhost", "127.0.0.1"]}, "127.0.0.1:8000", False, True),
        ({"ALLOWED_HOSTS": ["localhost", "::1", "0.0.0.0", ".localhost"]}, "localhost:8000", True, True),
        ({"ALLOWED_HOSTS": ["testserver", "localhost"]}, "localhost:8000", False, True),
        ({"ALLOWED_HOSTS": ["testserver", "b.test"]}, "testserver:8000", False, True),
        ({"ALLOWED_HOSTS": [".test"]}, "a.test:8000", False, True),
        ({"ALLOWED_HOSTS": ["TestServer"]}, "testserver:8000", True, True),
    ],
)
def test_pages_of_one_address_may_show_it_and_of_other_spellings_are_not_stored(
    settings, changes: dict[str, object], host: str, shown: bool, stored: bool
):
    settings.ALLOWED_HOSTS, settings.CACHING_PORT = ["testserver"], ""
    for name, value in changes.items():
        setattr(settings, name, value)
    request = RequestFactory().get("/", headers={"host": host}, SERVER_PORT="8000")
    assert (is_own_host(request), may_store_for(request)) == (shown, stored)


def test_over_another_scheme_than_the_site_s_no_page_is_given(settings):
    for scheme, redirect, secure, given in (
        ("https", False, True, True),
        ("https", False, False, False),
        ("http", False, True, False),
        ("", True, False, False),
        ("", False, True, True),
        ("", False, False, True),
    ):
        settings.CACHING_SCHEME, settings.SECURE_SSL_REDIRECT = scheme, redirect
        request = RequestFactory().get("/", secure=secure)
        assert may_serve(request) is given
        assert is_own_scheme(request) is (given and bool(scheme or redirect))
