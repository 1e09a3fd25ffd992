"""HTTP responses as read by the built-in load tool, in any pieces."""

from __future__ import annotations

import socket
import struct
import threading
import time

import pytest

from bench.measure.load import LoadJob
from bench.measure.load.openloop.connection import ResponseError, ResponseReader
from bench.measure.load.openloop.loop import ClosedLoop


def read(*pieces):
    response = ResponseReader()
    return response, [response.feed(piece) for piece in pieces]


def test_a_response_may_come_in_any_pieces():
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    for cut in range(1, len(raw)):
        response, done = read(raw[:cut], raw[cut:])
        assert done == [False, True] and (response.status, response.size, response.closes) == (200, 5, False)


def test_chunks_in_any_pieces():
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=1\r\n world\r\n0\r\n\r\n"
    for text in (raw, raw[:-2] + b"Server-Timing: db\r\n\r\n"):
        for cut in range(1, len(text)):
            response, done = read(text[:cut], text[cut:])
            # The rest of the end would be taken for the beginning of the next response.
            assert done == [False, True] and response.size == 11


@pytest.mark.parametrize("head", [b"304 Not Modified\r\nContent-Length: 500", b"204 No Content"])
def test_a_response_without_a_body_is_whole_with_its_head(head):
    response, done = read(b"HTTP/1.1 " + head + b"\r\n\r\n")
    assert done == [True] and (response.size, response.closes) == (0, False)


def test_early_hints_are_not_the_response():
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
    raw = hints + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    for cut in range(1, len(raw)):
        response, done = read(raw[:cut], raw[cut:])
        assert done == [False, True] and (response.status, response.size) == (200, 5)


def test_a_response_without_a_length_ends_with_its_connection():
    response, done = read(b"HTTP/1.1 200 OK\r\n\r\n", b"hello")
    assert done == [False, False] and response.ended() and response.closes
    response, _ = read(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nhello")
    assert not response.ended() and response.closes


@pytest.mark.parametrize("reset", [False, True])
def test_a_response_without_a_length_is_not_whole_where_its_connection_is_reset(reset):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                client.recv(4096)
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\nhello")
                time.sleep(0.05)
                if reset:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.close()

        threading.Thread(target=serve, daemon=True).start()
        job = LoadJob(f"http://127.0.0.1:{server.getsockname()[1]}", ("/",), connections=1, seconds=1)
        counts = ClosedLoop(job, 0, time.monotonic()).run()
        server.shutdown(socket.SHUT_RDWR)
    assert (counts.answers > 0, counts.read > 0) == (not reset, reset)


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ],
)
def test_more_than_the_response_is_none(raw):
    for more in (b"x", raw):
        with pytest.raises(ResponseError, match="more than one"):
            read(raw + more)


def test_what_is_no_response():
    with pytest.raises(ResponseError, match="no HTTP response"):
        read(b"SSH-2.0-OpenSSH\r\n\r\n")


@pytest.mark.parametrize(
    ("head", "closes"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection:close\r\nContent-Length:5", True),
        (b"HTTP/1.1 200 OK\r\ncontent-length:\t5 \r\nCONNECTION: Keep-Alive, Close", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 5", True),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5", False),
        (b"HTTP/1.1 200 OK\r\nX-Folded: a\r\n connection: close\r\nContent-Length: 5", False),
    ],
)
def test_fields_are_read_as_they_may_be_written(head, closes):
    response, done = read(head + b"\r\n\r\nhello")
    assert (done, response.size, response.closes) == ([True], 5, closes)


def test_chunks_count_if_a_length_is_named_as_well():
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding:chunked\r\n\r\n"
    response, done = read(head + b"5\r\nhel", b"lo\r\n0\r\n\r\n")
    assert (done, response.size) == ([False, True], 5)


@pytest.mark.parametrize("length", [b"Content-Length: -5\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n-5\r\nhello"])
def test_no_size_is_negative(length):
    with pytest.raises(ValueError, match="negative"):
        read(b"HTTP/1.1 200 OK\r\n" + length)
