"""All workers are killed while they render or store pages."""

from __future__ import annotations

import secrets
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psutil

from bench.errors import BenchError
from bench.measure.faults.edited import EditedRow, edited_rows, require_rows
from bench.measure.faults.fault import NO_CACHED_PAGES, Expected, fault
from bench.measure.faults.fault_context import FaultContext, FaultNotApplicable, application, instances, status_of
from bench.serve.machine.http import BadResponse, TooLate
from bench.verify.checks import stored_files
from bench.verify.crowd import Clients, Slow
from bench.verify.hits import new_path
from bench.verify.mismatch import Finding, Mismatch

# Requests fail until the workers are back, and a small machine starts them slowly.
KILLED = Expected(lost=None, recovery_s=None)
# A page of this duration; workers are killed at half of it.
SLOW = "/__probe__/slow/1000/{}/"
SLOW_S = 1.0
# Number of clients that wait for the page of a killed worker; later one waits.
WAITING = 60
# Allowance for this page beyond others: for a dead worker's lock, which expires.
LOCKED_S = 4.0
# All workers start at once, beside the clients: on a busy machine as slow as several starts. One more second for a
# master that ended with its workers.
STARTS, STARTED_S = 3, 4.0
BACK_S, PATIENCE_S = 20.0, 20.0
NO_WORKERS = "the application server has no worker processes under a master"
CODINGS = ("identity", "gzip")
# The site may respond with one worker at first; then nobody can query its progress.
ATTEMPTS = 8
AT_ONCE = "the application server sends a body only when it has all of it"
TOO_LATE = f"in {ATTEMPTS} attempts no worker was killed before its response"
# Number of kills of workers, and seconds of rewriting before each.
KILLS, REWRITTEN_S = 2, 0.3
READERS = 8


@fault("render-lock-holder-killed", "killed", KILLED, NO_CACHED_PAGES)
def lock_holder_killed(scene: FaultContext) -> Generator[None]:
    """All workers are killed while one renders a page, for 60 waiting clients and then for one: another page comes as
    soon as the servers can start, the same page at most 4 s later."""
    yield
    with scene.cause():
        # The requests of many clients wait for the lock before the next visitor comes, those of one do not.
        for clients in (WAITING, 1):
            _kill_holder(scene, clients)


def _kill_holder(scene: FaultContext, clients: int) -> None:
    """Kill the workers while so many clients wait for a page, and note how long the next visitors wait."""
    path = SLOW.format(secrets.token_hex(4))
    with ThreadPoolExecutor(clients) as pool:
        for _ in range(clients):
            pool.submit(status_of, scene.target, path, SLOW_S)
        time.sleep(SLOW_S / 2)
        must_kill_workers(scene)
        killed = time.monotonic()
    scene.wait(BACK_S, lambda: status_of(scene.target, new_path(), PATIENCE_S) == "200")
    back_s = time.monotonic() - killed
    same_s = _seconds(scene, path)
    other_s = _seconds(scene, SLOW.format(secrets.token_hex(4)))
    waits_s = {"back": back_s, "same_page": same_s, "other_page": other_s}
    scene.figures |= {f"{name}_of_{clients}_s": round(seconds, 3) for name, seconds in waits_s.items()}
    bound_s = STARTS * scene.running.ready_s + STARTED_S
    if back_s > bound_s:
        scene.wrong.append(
            f"another page came {back_s:.1f} s after the workers were killed, not within {bound_s:.1f} s"
        )
    if same_s > other_s + LOCKED_S:
        scene.wrong.append(f"GET {path}: after {same_s:.1f} s, another page after {other_s:.1f} s")


def _seconds(scene: FaultContext, path: str) -> float:
    """Time of a page; defects are noted."""
    begun = time.monotonic()
    if (status := status_of(scene.target, path, PATIENCE_S)) != "200":
        scene.wrong.append(f"GET {path}: {status}")
    return time.monotonic() - begun


@fault("killed-mid-body", "killed", KILLED)
def killed_mid_body(scene: FaultContext) -> Generator[None]:
    """All workers are killed in the middle of a body: the client sees the truncation, and no cache has a part of the
    body."""
    require_rows(scene)
    with edited_rows(scene) as (row,):
        yield
        with scene.cause():
            for coding in CODINGS:
                scene.note(_broken_off(scene, row, {"Accept-Encoding": coding}))
        yield


def _broken_off(scene: FaultContext, edited: EditedRow, headers: dict[str, str]) -> Generator[Finding]:
    context, reached = scene.context, False
    for _ in range(ATTEMPTS):
        with Slow(context, edited.writer, edited.row, "halting", headers) as slow:
            reached = reached or slow.reached
            if not slow.under_way:
                continue
            must_kill_workers(scene)
            scene.wait(BACK_S, scene.running.is_healthy)
        (request,) = slow.requests
        error = request.exception()
        if isinstance(error, TooLate):
            yield Mismatch("a connection that closes when the body breaks off", str(error))
        # A server in between may have sent nothing yet, and responds with an error page.
        if error is None and request.result().status < 500:
            yield from context.judge(request.result(), stored_files.complete)
        yield from context.expect(slow.path, stored_files.complete, headers=headers)
        return
    if reached:
        raise FaultNotApplicable(TOO_LATE)
    raise FaultNotApplicable(AT_ONCE)


@fault("killed-while-writing", "killed", KILLED, NO_CACHED_PAGES, cache_seconds=2)
def killed_while_writing(scene: FaultContext) -> Generator[None]:
    """All workers are killed while they store pages, at a time to live of 2 s: no page is cut off, and leftovers are
    removed."""
    require_rows(scene)
    with edited_rows(scene, stored_files.ROWS) as edited:
        writer, rows = edited[0].writer, [each.row for each in edited]
        try:
            paths, size = stored_files.large_pages(scene.context, rows)
        except (BadResponse, OSError, ValueError) as error:
            raise BenchError(str(error)) from None
        yield
        readers = Clients(scene.context, paths, READERS, stored_files.complete, tolerant=True)
        with scene.cause(), readers:
            for _ in range(KILLS):
                with suppress(BadResponse, OSError):
                    stored_files.rewrite(scene.context, writer, rows, REWRITTEN_S)
                must_kill_workers(scene)
                scene.wait(BACK_S, scene.running.is_healthy)
        scene.note(readers.wrong)
        for path in paths:
            scene.note(scene.context.expect(path, stored_files.complete))
        scene.note(stored_files.cut_off(scene.context))
        yield
        # A server that loses its own processes may count their pages as still in use.
        scene.note(stored_files.left_over(scene.context, stored_files.ROWS * stored_files.COPIES * size))


def must_kill_workers(scene: FaultContext) -> None:
    """Kill the workers of the application server. Raises FaultNotApplicable if it has none."""
    workers = []
    for name in instances(application(scene.running.case), scene.running.pids):
        with suppress(psutil.Error):
            workers += psutil.Process(scene.running.pids[name]).children(recursive=True)
    for worker in workers:
        with suppress(psutil.Error):
            worker.kill()
    if not workers:
        raise FaultNotApplicable(NO_WORKERS)


FAULTS = (lock_holder_killed, killed_mid_body, killed_while_writing)
