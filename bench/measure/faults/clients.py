"""Slow and malformed clients send requests beside ordinary visitors."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice, repeat

from bench.measure.faults.fault import Expected, Fault, fault
from bench.measure.faults.fault_context import FaultContext, Workers, application, instances, status_of
from bench.measure.faults.fault_threads import in_threads
from bench.measure.faults.malformed import CLOSED, FORM, SILENT, UNOPENED, requests, send_all
from bench.measure.faults.visitors import PAGE
from bench.serve.machine import http, processes
from bench.serve.machine.http import BadResponse, Target, build
from bench.verify.wire import Connection

# So many slow clients at a time: fewer than most stacks have threads, then more.
STEPS = (4, 5, 20, 200)
# Pause between batches, for the servers to accept them; and until all have reached the workers.
BETWEEN_S, SETTLED_S = 0.1, 0.3
# Duration of the other visitors' requests, and time limit of each response. On a busy machine one may be late, but not
# two in a row. Pauses between requests keep them from being a load.
OTHERS_S, LIMIT_S, PAUSE_S = 1.0, 1.0, 0.05
# A cheap page like the visitors' own, which waits for threads and not for the processor.
OTHERS_PAGE = PAGE.format("beside-slow")
# Longer than what the kernel takes from a server for one connection, 4 MB by default (tcp(7), tcp_wmem).
DOWNLOAD = "/__probe__/download/6/"
# So many clients send a body of so many bytes, but hold the last byte back for so long; then each upload has its time
# limit.
HOLDING, BODY_BYTES, HELD_S, UPLOAD_S = 20, 9_000_000, 3.0, 60.0
# So many of them send the last byte: to read all bodies would be load.
FINISHING = 4
# By so much may the memory of servers grow meanwhile: a third of the bodies, half of what as many readers do not read.
GROWTH_MB = 60.0
BOUNDARY = "slow-bodies"
# The same requests for every stack; several rounds divide them.
SEED = 1
MALFORMED = 10_000
# Together with the visitors they must not be more than the deployment can do, nor last longer in all rounds.
MIN_PER_SECOND, MALFORMED_S = 20, 60
# Refusals of an unknown method or coding, and of an unknown version.
REFUSALS = (501, 505)


# 200 MB of a body, 64 KB at a time, and lines of headers.
CHUNK, CHUNKS = http.chunked(b"a" * 65536, 65536).removesuffix(b"0\r\n\r\n"), 3200
COPIED = (b"X-Copied: 1\r\n", b"Cookie: a=1\r\n")
# Time limit, number of pieces between two looks at the servers, and their allowed growth.
FLOOD_S, LOOK_EVERY, MAX_GROWN_MB = 20.0, 100, 64


@dataclass(frozen=True)
class Slowness:
    """One kind of slow client.

    sends    the sent part of a request, with the host for braces
    at_once  number of clients at a time: slow clients must not be a load, and readers request much
    buffer   receive buffer of a client that reads nothing: with the smallest one, the rest waits in the servers
    """

    name: str
    sends: str
    at_once: int = 20
    buffer: int | None = None


HEADERS = Slowness("unfinished header blocks", f"GET {OTHERS_PAGE} HTTP/1.1\r\nHost: {{}}\r\n")
FORM_HEAD = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\n"
BODIES = Slowness("slow bodies", f"POST {FORM} HTTP/1.1\r\nHost: {{}}\r\n{FORM_HEAD}x")
READERS = Slowness("slow readers", f"GET {DOWNLOAD} HTTP/1.1\r\nHost: {{}}\r\n\r\n", at_once=4, buffer=2048)


def _slow(name: str, what: str, how: Slowness, then: Callable[[FaultContext], None] | None = None) -> Fault:
    """More and more clients that `what`, until the site stops, with a note of their number; then more."""

    def run(scene: FaultContext) -> Generator[None]:
        yield
        scene.figures["stops_at"] = None
        with scene.cause():
            with ExitStack() as clients, _bounded_memory(scene, in_front(scene)) as measure:
                for before, count in zip((0, *STEPS), STEPS, strict=False):
                    if problem := _effect_of_more(scene, how, clients, count - before):
                        scene.figures["stops_at"] = count
                        scene.wrong.append(f"{count} {how.name} stop it: {problem}")
                        break
                    if count == HOLDING:
                        measure(f"{count} {how.name}")
            if then:
                then(scene)

    title = f"Clients that {what}: {', '.join(map(str, STEPS))} of them, until others are not served within 1 s."
    # Visitors may be lost while slow clients hold all threads, and return when they go.
    return Fault(name, "abused", title, run, Expected(lost=0, recovery_s=None))


def _effect_of_more(scene: FaultContext, how: Slowness, clients: ExitStack, more: int) -> str:
    """The effect of so many more slow clients on the site, or empty."""
    try:
        for number in range(more):
            if number % how.at_once == 0:
                time.sleep(BETWEEN_S)
                scene.supervisor.step()
            client = clients.enter_context(Connection(scene.target, receive_buffer=how.buffer))
            client.send(how.sends.format(scene.target.netloc).encode())
    except OSError as error:
        return f"a connection: {error or type(error).__name__}"
    time.sleep(SETTLED_S)
    return others_wait(scene.target, (OTHERS_PAGE, scene.site.url("health")))


def others_wait(target: Target, paths: tuple[str, ...]) -> str:
    """The first of these paths, requested in turn, that is late twice in a row, and the reason; empty if none."""
    late = dict.fromkeys(paths, "")
    deadline = time.monotonic() + OTHERS_S
    while time.monotonic() < deadline or any(late.values()):
        for path, before in late.items():
            late[path] = status_of(target, path, LIMIT_S).removeprefix("200")
            if before and late[path]:
                return f"GET {path}: {late[path]}"
        time.sleep(PAUSE_S)
    return ""


def in_front(scene: FaultContext) -> list[str]:
    """The servers between clients and the application server, by their names among the process ids."""
    behind = instances(application(scene.running.case), scene.running.servers)
    return [name for name in scene.running.servers if name not in behind]


@contextmanager
def _bounded_memory(scene: FaultContext, servers: Sequence[str]) -> Iterator[Callable[[str], None]]:
    """Measure servers now; yields a function that notes the growth of their memory since then, and any fault.

    Without servers, or if their memory is unreadable, nothing is noted.
    """
    before_mb = _memory_mb(scene, servers)

    def measure(why: str) -> None:
        now_mb = _memory_mb(scene, servers)
        if before_mb is None or now_mb is None:
            return
        grown_mb = round(now_mb - before_mb, 1)
        scene.figures["memory_growth_mb"] = grown_mb
        if grown_mb > GROWTH_MB:
            names = ", ".join(servers)
            scene.wrong.append(f"{why}: the memory of {names} grew by {grown_mb:g} MB, {GROWTH_MB:g} MB are allowed")

    yield measure


def _memory_mb(scene: FaultContext, servers: Sequence[str]) -> float | None:
    sizes = [processes.memory_bytes(scene.running.pids[name]) for name in servers]
    known = [size for size in sizes if size is not None]
    if sizes and len(known) == len(sizes):
        return sum(known) / 1e6
    return None


def _large_bodies(scene: FaultContext) -> None:
    """20 visitors hold the last byte of 9 MB back while the memory of all servers is measured; no upload is lost."""
    work = [partial(_upload, scene.target, number < FINISHING) for number in range(HOLDING)]
    with _bounded_memory(scene, scene.running.servers) as measure, in_threads(work) as uploads:
        scene.wait(HELD_S)
        measure(f"{HOLDING} bodies of {BODY_BYTES:,} bytes")
    statuses = Counter(upload.result() for upload in uploads[:FINISHING])
    statuses.pop("200", None)
    if statuses:
        why = ", ".join(f"{count}x {word}" for word, count in statuses.items())
        scene.wrong.append(f"{statuses.total()} of {FINISHING} uploads were lost: {why}")


def _upload(target: Target, finishes: bool, over: threading.Event) -> str:
    """Upload a file, its last byte when `over` is set; returns the status of the response, or the reason for its
    absence.

    finishes  whether the last byte is sent
    """
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
    body = head.encode() + b"x" * BODY_BYTES + f"\r\n--{BOUNDARY}--\r\n".encode()
    kind = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    request = build(target, "POST", FORM, kind, body)
    try:
        with Connection(target, timeout_s=UPLOAD_S) as connection:
            connection.send(request[:-1])
            over.wait()
            if not finishes:
                return ""
            connection.send(request[-1:])
            return str(connection.read("POST").status)
    except (BadResponse, OSError) as error:
        return str(error) or type(error).__name__


@fault("malformed", "abused")
def malformed(scene: FaultContext) -> Generator[None]:
    """10,000 malformed requests from a seed, over all rounds: others get right responses, no worker ends, no 5xx."""
    rate = max(MIN_PER_SECOND, scene.rate)
    yield
    before, workers = scene.running.log_bytes(), Workers(scene.running)
    share = islice(requests(SEED, MALFORMED, scene.target.netloc), scene.round - 1, None, scene.rounds)

    def meanwhile() -> None:
        workers.update()
        scene.supervisor.step()

    with scene.cause():
        responses = send_all(scene.target, share, rate, MALFORMED_S / scene.rounds, meanwhile)
    workers.update()
    without = Counter(response for _, response in responses)
    errors = Counter(kind for kind, it in responses if isinstance(it, int) and it >= 500 and it not in REFUSALS)
    scene.figures |= {
        "seed": SEED,
        "malformed_requests": len(responses),
        "server_errors": errors.total(),
        "workers_ended": workers.ended,
        "connections_closed": without[CLOSED],
        "without_answer": without[SILENT],
        "log_bytes_per_request": round((scene.running.log_bytes() - before) / max(1, len(responses)), 1),
    }
    if errors:
        kinds = ", ".join(f"{count} for {kind}" for kind, count in errors.most_common())
        scene.wrong.append(f"{errors.total()} malformed requests got a 5xx: {kinds}")
    if workers.ended:
        scene.wrong.append(f"{workers.ended} worker processes ended")
    if without[UNOPENED]:
        scene.wrong.append(f"{without[UNOPENED]} connections were refused")


@fault("endless-body", "abused")
def endless_body(scene: FaultContext) -> Generator[None]:
    """200 MB in chunks from one client are refused or cut off: the servers grow by 64 MB at most, others are served."""
    yield
    head = http.build(scene.target, "POST", FORM, {"Transfer-Encoding": "chunked"}, b"")
    with scene.cause():
        _flooded(scene, "200 MB in chunks", [head, *repeat(CHUNK, CHUNKS), b"0\r\n\r\n"])


@fault("copied-headers", "abused")
def copied_headers(scene: FaultContext) -> Generator[None]:
    """100,000 copies of a header are refused or cut off: the servers grow by 64 MB at most, and others are served."""
    yield
    with scene.cause():
        for line in COPIED:
            head = http.build(scene.target, "GET", OTHERS_PAGE).removesuffix(b"\r\n")
            _flooded(scene, f"100,000 times {line.decode().strip()}", [head, *repeat(line * 1000, 100), b"\r\n"])


def _flooded(scene: FaultContext, what: str, pieces: list[bytes]) -> None:
    """Send a request of many pieces, as far as the server accepts them; note a wrong end."""
    workers, before = Workers(scene.running), _known_memory_mb(scene)
    most, begun, got_status = before, time.monotonic(), "no response"
    try:
        with Connection(scene.target, timeout_s=FLOOD_S) as connection:
            for number, piece in enumerate(pieces):
                if time.monotonic() - begun > FLOOD_S or not connection.send_anyway(piece):
                    break
                if number % LOOK_EVERY == 0:
                    scene.supervisor.step()
                    workers.update()
                    most = max(most, _known_memory_mb(scene))
            got_status = str(connection.read().status)
    except (TimeoutError, http.TooLate):
        got_status = "no response in time"
    except (BadResponse, OSError):
        got_status = CLOSED
    most = max(most, _known_memory_mb(scene))
    scene.figures |= {"memory_growth_mb": round(max(most - before, scene.figures.get("memory_growth_mb") or 0), 1)}
    if got_status != CLOSED and not got_status.startswith("4"):
        scene.wrong.append(f"{what}: {got_status}")
    if most - before > MAX_GROWN_MB:
        scene.wrong.append(f"{what}: the servers grew by {most - before:.0f} MB")
    if workers.update():
        scene.wrong.append(f"{what}: {workers.ended} worker processes ended")


def _known_memory_mb(scene: FaultContext) -> float:
    """The memory of the servers and services, as far as readable."""
    return sum(processes.memory_bytes(pid) or 0 for pid in scene.running.pids.values()) / 1e6


FAULTS = (
    _slow("slow-headers", "never end their header block", HEADERS),
    _slow("slow-bodies", "send 1 byte of 1,000, then all except 1 of 9 MB", BODIES, _large_bodies),
    _slow("slow-readers", "read nothing of 6 MB", READERS),
    malformed,
    endless_body,
    copied_headers,
)
