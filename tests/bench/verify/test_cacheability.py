"""What a stored page may have otherwise than a rendered one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bench.verify import layer_facts
from bench.verify.cacheability import different_headers
from bench.verify.wire import Answer


def answer(*lines: str) -> Answer:
    return Answer(200, "HTTP/1.1", tuple(("Vary", line) for line in lines), b"")


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
    found = list(different_headers("GET /, a hit", answer(*stored), answer(*rendered), ["Vary"], exact))
    assert (found == []) == right


@pytest.mark.parametrize(
    ("bodies", "strict", "usual", "why"),
    [
        (True, False, (), "it has Cache-Control and Expires of its own, and the layer stores bodies alone"),
        (True, False, ("Cache-Control",), "it has Expires of its own, and the layer stores bodies alone"),
        (True, False, ("Cache-Control", "Expires"), None),
        (False, False, (), None),
        # Of a strict site no page may have them.
        (True, True, (), None),
    ],
)
def test_a_store_of_bodies_has_no_place_for_the_headers_of_one_page(monkeypatch, bodies, strict, usual, why):
    monkeypatch.setattr(layer_facts, "layers_of", lambda context: (SimpleNamespace(bodies=bodies),))

    def page(*names: str) -> Answer:
        return Answer(200, "HTTP/1.1", tuple((name, "max-age=60") for name in names), b"")

    context = SimpleNamespace(strict=strict, get=lambda path: page(*usual))
    assert layer_facts.obstacle_here(context, page("Cache-Control", "Expires")) == why
