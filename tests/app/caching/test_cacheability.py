"""Which responses a shared cache may store."""

from __future__ import annotations

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from django.utils.http import http_date

from benchapp.caching.cacheability import has_only_common_headers, may_store

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
            ({"Cache-Control": said}, True)
            for said in (
                "private",
                "max-age=60, PRIVATE",
                "No-Store",
                "no-cache",
                'private="Set-Cookie, X"',
                "max-age = 0",
                "s-maxage=0",
            )
        ),
        *(({"Vary": said}, said not in ("Cookie", "cookie")) for said in ("Cookie", "cookie", "*", "Cookie , *")),
        *(({"Content-Type": said}, False) for said in ("text/html;charset=UTF-8", "Text/HTML; charset=utf-8")),
        *(({"Content-Type": f"text/{said}"}, True) for said in ("plain; charset=utf-8", "html; charset=latin-1")),
        ({"Content-Encoding": "gzip"}, True),
        ({"Set-Cookie": "a=b"}, True),
    ],
)
def test_headers_that_forbid_storing(headers: dict[str, str], forbidden: bool, settings):
    settings.CACHING_SECONDS = 60
    response = HttpResponse("a page", headers=headers)
    assert may_store(RequestFactory().get("/"), response) is not forbidden


def test_a_second_line_of_vary_counts():
    class TwoLines(HttpResponse):
        def items(self):
            return [*super().items(), ("vary", "*")]

    request, headers = RequestFactory().get("/"), {"Vary": "Cookie"}
    assert may_store(request, HttpResponse("a page", headers=headers))
    assert not may_store(request, TwoLines("a page", headers=headers))


def test_a_page_has_every_header_of_all_pages_and_no_other_where_a_body_alone_is_stored(settings):
    def stored(**changes: str | None) -> bool:
        headers = {"X-Frame-Options": "DENY", "Content-Security-Policy": "default-src 'self'", "Vary": "Cookie"}
        found = {name.replace("_", "-"): value for name, value in {**headers, **changes}.items()}
        given = {name: value for name, value in found.items() if value is not None}
        return has_only_common_headers(HttpResponse("x", headers=given))

    settings.X_FRAME_OPTIONS = "DENY"
    assert not stored(), "a header of its own"
    everywhere = {"X-Frame-Options": "DENY", "Content-Security-Policy": "default-src 'self'", "Vary": "Cookie"}
    settings.CACHING_PAGE_HEADERS = everywhere | {"X-Content-Type-Options": "nosniff"}
    # The last is added further out, and HSTS over HTTPS alone.
    assert stored() and stored(Strict_Transport_Security="max-age=60")
    assert not stored(X_Own="1")
    settings.CACHING_PAGE_HEADERS = everywhere
    for name in ("X-Frame-Options", "Content-Security-Policy"):
        assert not stored(**{name: None}), f"{name} was taken off"
        assert not stored(**{name: "other"})
