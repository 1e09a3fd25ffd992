"""HTTP answers as the load tool of this project reads them, in whatever pieces they come."""

from __future__ import annotations

import pytest

from bench.load.openloop.connection import Answer, AnswerError


def read(*pieces):
    answer = Answer()
    return answer, [answer.feed(piece) for piece in pieces]


def test_an_answer_may_come_in_any_pieces():
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    for cut in range(1, len(whole)):
        answer, done = read(whole[:cut], whole[cut:])
        assert done == [False, True] and (answer.status, answer.size, answer.closes) == (200, 5, False)


def test_chunks_in_any_pieces():
    whole = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=1\r\n world\r\n0\r\n\r\n"
    for text in (whole, whole[:-2] + b"Server-Timing: db\r\n\r\n"):
        for cut in range(1, len(text)):
            answer, done = read(text[:cut], text[cut:])
            # What is left of the end would be taken for the beginning of the next answer.
            assert done == [False, True] and answer.size == 11


@pytest.mark.parametrize("head", [b"304 Not Modified\r\nContent-Length: 500", b"204 No Content"])
def test_an_answer_without_a_body_is_whole_with_its_head(head):
    answer, done = read(b"HTTP/1.1 " + head + b"\r\n\r\n")
    assert done == [True] and (answer.size, answer.closes) == (0, False)


def test_early_hints_are_not_the_answer():
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
    whole = hints + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    for cut in range(1, len(whole)):
        answer, done = read(whole[:cut], whole[cut:])
        assert done == [False, True] and (answer.status, answer.size) == (200, 5)


def test_an_answer_without_a_length_ends_with_its_connection():
    answer, done = read(b"HTTP/1.1 200 OK\r\n\r\n", b"hello")
    assert done == [False, False] and answer.ended() and answer.closes
    answer, _ = read(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nhello")
    assert not answer.ended() and answer.closes


def test_what_is_no_answer():
    with pytest.raises(AnswerError, match="no HTTP answer"):
        read(b"SSH-2.0-OpenSSH\r\n\r\n")
