"""What a stored page may have otherwise than a rendered one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bench.verify.cacheability import SHARED_VARIANTS, different_headers, obstacle
from bench.verify.hits import obstacle_here
from bench.verify.wire import Answer
from benchapp.caching.cacheability import VARY_ALLOWED


def answer(*lines: str) -> Answer:
    return Answer(200, "HTTP/1.1", tuple(("Vary", line) for line in lines), b"")


LATER = "Sat, 01 Nov 2125 10:00:00 GMT"
OWN = {"Expires": LATER, "Content-Security-Policy": "default-src *"}


def page(body: str = "", **headers: str) -> Answer:
    given = {"Content_Type": "text/html; charset=utf-8"} | headers
    return Answer(
        200, "HTTP/1.1", tuple((name.replace("_", "-"), value) for name, value in given.items()), body.encode()
    )


def test_a_page_is_cached_for_no_longer_than_it_says():
    assert (
        obstacle(page(Cache_Control="max-age=59"), 60)
        == "its Cache-Control is max-age=59, and the layer stores for 60 s"
    )
    assert obstacle(page(Cache_Control="max-age=60"), 60) is None
    assert obstacle(page(Cache_Control="max-age=0,s-maxage=90"), 60) == "its Cache-Control is max-age=0,s-maxage=90"
    assert obstacle(page(Expires="0"), 60) == "its Expires is 0, and the layer stores for 60 s"
    assert obstacle(page(Expires=LATER), 60) is None


def test_a_page_with_a_nonce_or_in_another_charset_is_no_page_for_everybody():
    nonce = "it has a nonce, which is new for each visitor"
    assert obstacle(page(Content_Security_Policy="script-src 'nonce-abc'")) == nonce
    assert obstacle(page("<p>a<script nonce=abc>1</script>")) == nonce
    assert (
        obstacle(page(Content_Type="text/html; charset=iso-8859-1"))
        == "its Content-Type is text/html; charset=iso-8859-1"
    )
    assert obstacle(page("<p>a nonce=abc", Content_Security_Policy="default-src 'self'")) is None


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
    assert (list(different_headers(answer(*stored), answer(*rendered), ["Vary"], exact)) == []) == right


def test_a_page_varies_by_the_same_headers_here_and_in_the_layers():
    assert SHARED_VARIANTS == VARY_ALLOWED


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
