"""What a stored page may have otherwise than a rendered one."""

from __future__ import annotations

import pytest

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
