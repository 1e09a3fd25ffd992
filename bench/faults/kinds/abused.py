"""Slow and malformed clients ask beside ordinary visitors."""

from __future__ import annotations

from collections.abc import Generator
from itertools import islice

from bench.faults.abuser import Answers, send_all
from bench.faults.fault import Expected, fault
from bench.faults.malformed import FORM, requests
from bench.faults.scene import Scene
from bench.faults.visitors import PAGE
from bench.faults.watch import Workers
from bench.verify import slow
from bench.verify.slow import SlowClients, Slowness
from bench.verify.wire import Target

# So many slow clients at a time: fewer than most stacks have threads, then more.
STEPS = (4, 5, 20, 200)
# They come some at a time: what slow clients ask for must not be load, and readers ask for much.
AT_ONCE, READERS_AT_ONCE, BETWEEN_S = 20, 4, 0.1
# A page as the visitors' own; it costs little, so that it waits for threads and not for the processor.
ASKED = PAGE.format("beside-slow")
# Longer than what the kernel takes from a server for one connection, 4 MB by default (tcp(7), tcp_wmem).
DOWNLOAD = "/__probe__/download/6/"
# The same requests for every stack; with several rounds each makes its share of them.
SEED = 1
MALFORMED = 10_000
# Together with the visitors they must not be more than the deployment can do, nor last longer in all rounds.
MIN_PER_SECOND, LIMIT_S = 20, 60


@fault("slow-headers", group="abused", expected=Expected(lost=0, recovery_s=None))
def slow_headers(scene: Scene) -> Generator[None]:
    """Clients that never end their header block: 4, 5, 20, 200 of them, until others are not served within 1 s."""
    yield
    _slow(scene, slow.headers(Target.parse(scene.running.url), ASKED))


@fault("slow-bodies", group="abused", expected=Expected(lost=0, recovery_s=None))
def slow_bodies(scene: Scene) -> Generator[None]:
    """Clients that send 1 byte of 1,000: 4, 5, 20, 200 of them, until others are not served within 1 s."""
    yield
    _slow(scene, slow.bodies(Target.parse(scene.running.url), FORM))


@fault("slow-readers", group="abused", expected=Expected(lost=0, recovery_s=None))
def slow_readers(scene: Scene) -> Generator[None]:
    """Clients that read nothing of 6 MB: 4, 5, 20, 200 of them, until others are not served within 1 s."""
    yield
    _slow(scene, slow.readers(Target.parse(scene.running.url), DOWNLOAD))


def _slow(scene: Scene, how: Slowness) -> None:
    """Open more and more slow clients until they stop the site, and note at how many they do."""
    scene.figures["stops_at"] = None
    scene.strike()
    with SlowClients(Target.parse(scene.running.url), how) as clients:
        for count in STEPS:
            if problem := _held_up(scene, clients, count):
                scene.figures["stops_at"] = count
                scene.wrong.append(f"{count} {how.name} stop it: {problem}")
                break
    scene.end()


def _held_up(scene: Scene, clients: SlowClients, count: int) -> str:
    """How so many slow clients stop the site, or empty."""
    try:
        while clients.count < count:
            more = min(count, clients.count + (AT_ONCE if clients.how.reads else READERS_AT_ONCE))
            clients.grow(more, BETWEEN_S if more < count else None)
            scene.supervisor.step()
    except OSError as error:
        return f"a connection: {error or type(error).__name__}"
    found = slow.held_up(clients.target, (ASKED, scene.site.url("health")))
    return f"GET {found[0]}: {found[1]}" if found else ""


@fault("malformed", group="abused")
def malformed(scene: Scene) -> Generator[None]:
    """10,000 malformed requests from a seed, over all rounds: others get right answers, no worker ends, no 5xx."""
    target, rate = Target.parse(scene.running.url), max(MIN_PER_SECOND, scene.rate)
    yield
    before = scene.running.log_bytes()
    scene.strike()
    with Workers(scene.running) as workers:
        share = islice(requests(SEED, MALFORMED, target.netloc), scene.round - 1, None, scene.rounds)
        answers = send_all(target, share, rate, LIMIT_S / scene.rounds, scene.supervisor.step)
    scene.end()
    _note(scene, answers, workers.ended, scene.running.log_bytes() - before)


def _note(scene: Scene, answers: Answers, ended: int, log_bytes: int) -> None:
    errors = answers.server_errors
    scene.figures |= {
        "seed": SEED,
        "malformed_requests": answers.sent,
        "server_errors": errors.total(),
        "workers_ended": ended,
        "connections_closed": answers.refused,
        "without_answer": answers.silent,
        "log_bytes_per_request": round(log_bytes / max(1, answers.sent), 1),
    }
    if errors:
        kinds = ", ".join(f"{count} for {kind}" for kind, count in errors.most_common())
        scene.wrong.append(f"{errors.total()} malformed requests got a 5xx: {kinds}")
    if ended:
        scene.wrong.append(f"{ended} worker processes ended")
    if answers.unopened:
        scene.wrong.append(f"{answers.unopened} connections were refused")
