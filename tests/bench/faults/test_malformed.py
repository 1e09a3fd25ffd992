"""Malformed requests follow from their seed, and none of them is a right one."""

from __future__ import annotations

import collections
import re

import pytest

from bench.faults.malformed import CHOICES, KINDS, requests

NETLOC = "127.0.0.1:8000"
HOST = b"Host: 127.0.0.1:8000\r\n"


def test_the_same_seed_makes_the_same_requests():
    one, same, other = (list(requests(seed, 500, NETLOC)) for seed in (7, 7, 8))
    assert one == same
    assert one != other


def test_every_kind_is_among_them_about_as_often():
    kinds = collections.Counter(request.kind for request in requests(1, 2_000, NETLOC))
    assert len(kinds) == len(KINDS)
    assert min(kinds.values()) > 2_000 / len(KINDS) / 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_many_forms(kind):
    assert len({request.data for request in requests(3, 2_000, NETLOC) if request.kind == kind}) >= 4


def test_every_word_is_filled_in():
    words = rb"<(?:%s|form|host|length|noise|cut)>" % b"|".join(CHOICES)
    assert [request for request in requests(1, 2_000, NETLOC) if re.search(words, request.data)] == []


def test_a_pair_has_two_lengths_and_another_request_behind_it():
    pairs = [request for request in requests(4, 1_000, NETLOC) if request.kind == "smuggling pair"]
    for pair in pairs:
        head, _, rest = pair.data.partition(b"\r\n\r\n")
        assert b"Content-Length: " in head and b"ransfer" in head and pair.waits
        assert rest.startswith(b"0\r\n\r\nGET /hidden/")
        assert rest.endswith(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")


def test_what_is_cut_off_says_so():
    found = [request for request in requests(5, 3_000, NETLOC) if request.data.endswith(b"\r\n3\r\na=1\r\n")]
    assert found and all(request.waits for request in found)
