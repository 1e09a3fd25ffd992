"""Connections: keep-alive, pipelined, slow, and many at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from bench.verify import wire
from bench.verify.check import AFTER, check
from bench.verify.checks.bodies import MARK, echo
from bench.verify.checks.pages import differences
from bench.verify.context import Context
from bench.verify.finding import NEEDS_DATABASE, Mismatch, NotTried
from bench.verify.wire import Answer, BadAnswer, Connection

CLIENTS = 100
SLOW_PIECES = 6
SLOW_PAUSE_S = 0.05
SLOW_BUFFER = 65536


@check("keep-alive")
def keep_alive(context: Context) -> Iterator[Mismatch]:
    """Each request on a keep-alive connection gets the right answer, for as long as the server keeps it open."""
    with Connection(context.target) as connection:
        for number, path in enumerate([*_paths(context), *context.site.main_paths]):
            try:
                answer = connection.exchange("GET", path)
            except (wire.Closed, BrokenPipeError, ConnectionResetError) as error:
                if number == 0:
                    yield Mismatch(f"GET {path}: an answer", str(error))
                return
            yield from _wrong(context, path, answer, f"request {number + 1} of a connection")
            if not answer.keeps_open:
                return


@check("pipelining")
def pipelining(context: Context) -> Iterator[Mismatch]:
    """Pipelined requests are answered in their order, unless the server closes the connection."""
    paths = [*context.site.small_files, *_paths(context)]
    with Connection(context.target) as connection:
        connection.send(b"".join(wire.build(context.target, "GET", path) for path in paths))
        for number, path in enumerate(paths):
            try:
                answer = connection.read()
            except (wire.Closed, ConnectionResetError) as error:
                if number == 0:
                    yield Mismatch(f"{len(paths)} requests at once: an answer to the first", str(error))
                return
            yield from _wrong(context, path, answer, f"request {number + 1} of {len(paths)} sent at once")
            if not answer.keeps_open:
                return


@check("http-1.0")
def http_1_0(context: Context) -> Iterator[Mismatch]:
    """An HTTP/1.0 client gets the whole page without chunks, and then the connection is closed."""
    for path in _paths(context):
        with Connection(context.target) as connection:
            answer = connection.exchange("GET", path, version="1.0")
            if answer.header("Transfer-Encoding"):
                yield Mismatch(f"GET {path} with HTTP/1.0: no Transfer-Encoding", "chunked")
            yield from _wrong(context, path, answer, "HTTP/1.0")
            try:
                extra = connection.rest()
            except BadAnswer as error:
                yield Mismatch(f"GET {path} with HTTP/1.0: closed after the answer", str(error))
            else:
                if extra:
                    yield Mismatch(f"GET {path} with HTTP/1.0: nothing after the answer", f"{len(extra)} bytes")


@check("slow-request", background=True)
def slow_request(context: Context) -> Iterator[Mismatch]:
    """A request that arrives in small pieces gets the right answer."""
    home, form = context.site.url("home"), echo(context)
    yield from _wrong(context, home, _send_slowly(context, wire.build(context.target, "GET", home)), "a slow request")
    answer = _send_slowly(context, wire.build(context.target, "POST", form.path, form.headers, form.body))
    if answer.status != 200 or MARK not in answer.text:
        yield Mismatch(f"POST {form.path} in pieces: status 200 and the form as sent", f"status {answer.status}")


@check("slow-reader", background=True)
def slow_reader(context: Context) -> Iterator[Mismatch]:
    """A client that reads slowly gets the whole of a large file."""
    large = context.site.url("static_large")
    with Connection(context.target, receive_buffer=SLOW_BUFFER) as connection:
        connection.send(wire.build(context.target, "GET", large, {"Connection": "close"}))
        # The kernels of both sides buffer the answer; the pauses make the reader slow.
        answer = connection.read(pause=lambda: time.sleep(SLOW_PAUSE_S))
    if answer.body != context.get(large).body:
        yield Mismatch(f"GET {large} read slowly: the whole file", f"{len(answer.body)} bytes")


def _send_slowly(context: Context, request: bytes) -> Answer:
    """The answer to a request sent in pieces; raises BadAnswer when something comes back before its last piece."""
    size = len(request) // SLOW_PIECES + 1
    with Connection(context.target) as connection:
        for start in range(0, len(request), size):
            connection.send(request[start : start + size])
            last = start + size >= len(request)
            if not last and not connection.quiet_for(SLOW_PAUSE_S):
                early = connection.early_bytes()
                raise BadAnswer(f"an answer before the request was whole: {early[:60]!r}")
        return connection.read()


def _paths(context: Context) -> list[str]:
    """The main pages and a small static file, if there is one."""
    return [*context.site.main_paths, *context.site.small_files]


@check("concurrency", stage=AFTER)
def concurrency(context: Context) -> Iterator[Mismatch]:
    """100 clients at once, each requesting pages and files in turn, get no error and no wrong answer."""
    if not context.site.has_database:
        raise NotTried(NEEDS_DATABASE)
    # Pages that no comment changes still are as they were rendered in process.
    unchanged = [path for kind, path in context.site.urls.items() if kind.startswith("uncommented")]
    paths = [*context.site.small_files, *(unchanged or context.site.main_paths)]
    errors: list[str] = []
    wrong: list[Mismatch] = []
    start = threading.Barrier(CLIENTS)
    deadline = time.monotonic() + context.load_s

    def client(number: int) -> None:
        turn = number
        start.wait(wire.TIMEOUT_S)
        try:
            while True:
                with Connection(context.target, timeout_s=15) as connection:
                    turn = _until_closed(context, connection, paths, turn, deadline, wrong)
                if time.monotonic() > deadline:
                    return
        except (OSError, BadAnswer) as error:
            errors.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield from wrong[:1]
    if errors:
        yield Mismatch(f"{CLIENTS} clients at once: no error", f"{len(errors)} of them got one, first {errors[0]}")
    elif wrong:
        yield Mismatch(f"{CLIENTS} clients at once: right answers", f"{len(wrong)} wrong")


def _until_closed(
    context: Context, connection: Connection, paths: list[str], turn: int, deadline: float, wrong: list[Mismatch]
) -> int:
    """Request one path after another until the server closes the connection or time is up; the next turn."""
    while True:
        path = paths[turn % len(paths)]
        reused = connection.used
        try:
            answer = connection.exchange("GET", path)
        except (wire.Closed, BrokenPipeError, ConnectionResetError):
            # A server may close a keep-alive connection at any time; a client then opens another.
            if reused:
                return turn
            raise
        turn += 1
        wrong.extend(_wrong(context, path, answer, f"one of {CLIENTS} clients at once"))
        if not answer.keeps_open or time.monotonic() > deadline:
            return turn


def _wrong(context: Context, path: str, answer: Answer, when: str) -> Iterator[Mismatch]:
    """What is wrong with an answer to GET `path`."""
    if answer.status != 200:
        yield Mismatch(f"{when}, GET {path}: status 200", f"status {answer.status}")
    elif path in context.site.pages:
        for wrong in differences(context, path, answer):
            yield Mismatch(f"{when}, {wrong.expected}", wrong.got)
    elif answer.body != context.first(path).body:
        yield Mismatch(f"{when}, GET {path}: the file", f"{len(answer.body)} other bytes")
