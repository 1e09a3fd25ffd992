"""Why no cache may store a page, and what a stored one may have otherwise than a rendered one."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from bench.verify.checks.pages import different_headers
from bench.verify.hits import VARY_ALLOWED, obstacle, obstacle_here
from bench.verify.wire import Answer
from benchapp.caching import cacheability

LATER = "Sat, 01 Nov 2125 10:00:00 GMT"
OWN = {"Expires": LATER, "Content-Security-Policy": "default-src *"}


def page(body: str = "", **headers: str) -> Answer:
    given = {"Content_Type": "text/html; charset=utf-8"} | headers
    return Answer(
        200, "HTTP/1.1", tuple((name.replace("_", "-"), value) for name, value in given.items()), body.encode()
    )


NONCE = "it has a nonce, which is new for each visitor"
LATIN = "text/html; charset=iso-8859-1"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (page(), None),
        (page(Vary="Cookie, Accept-Encoding", Cache_Control="public, max-age=60"), None),
        (page(Vary="origin, HX-Request"), None),
        (page(Vary="Cookie, Accept-Language"), "it has Vary: accept-language"),
        (page(Vary="*"), "it has Vary: *"),
        (replace(page(), status=404), "its status is 404"),
        (page(Set_Cookie="csrftoken=x; Path=/"), "it sets the cookie csrftoken"),
        (page(Cache_Control="Private, max-age=60"), "its Cache-Control is Private, max-age=60"),
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
    context = SimpleNamespace(get=lambda path: new, site=SimpleNamespace(description=description))
    assert (list(different_headers(context, "/", kept, ["Vary"])) == []) == right


def test_a_page_varies_by_the_same_headers_here_and_in_the_layers():
    assert VARY_ALLOWED == cacheability.VARY_ALLOWED


ALONE = "of its own, and the layer stores bodies alone"


@pytest.mark.parametrize(
    ("bodies", "strict", "usual", "why"),
    [
        (True, False, {}, f"it has Content-Security-Policy and Expires {ALONE}"),
        (True, False, {"Expires": LATER}, f"it has Content-Security-Policy {ALONE}"),
        (True, False, {"Expires": LATER, "Content-Security-Policy": "default-src *"}, None),
        # Each page has another.
        (
            True,
            False,
            {"Expires": LATER, "Content-Security-Policy": "default-src"},
            f"it has Content-Security-Policy {ALONE}",
        ),
        (False, False, {}, None),
        # Of a strict site no page may have them.
        (True, True, {}, None),
    ],
)
def test_a_store_of_bodies_has_no_place_for_the_headers_of_one_page(bodies, strict, usual, why):
    layers = [SimpleNamespace(bodies=bodies)]
    context = SimpleNamespace(strict=strict, get=lambda path: page(**usual), layers=layers, time_to_live_s=60)
    assert obstacle_here(context, page(**OWN)) == why
