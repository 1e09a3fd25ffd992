"""The caching service runs and nobody reaches it; workers die while one of them renders a page."""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from bench.measure.faults.fault import NO_CACHED_PAGES, NO_SERVICE, Expected, fault
from bench.measure.faults.fault_context import FaultContext, FaultNotApplicable, application, status_of
from bench.serve.machine import http
from bench.verify.finding import NEEDS_ROWS
from bench.verify.page_parser import TOKEN
from bench.verify.rows import ROWS
from bench.verify.visitor import Visitor

# For how long nobody reaches the service, and how soon after that everybody gets the new page.
CUT_OFF_S, FRESH_S = 3.0, 6.0
# Each worker has connections of its own: so many requests in a row get the new page.
IN_A_ROW, POLL_S = 8, 0.05
# A page that takes so long, at half of which workers are killed; and one that takes no time.
SLOW, QUICK = "/__probe__/slow/1000/{}/", "/__probe__/slow/0/{}/"
SLOW_S = 1.0
# By so much longer than another page may it take then: for a dead worker's lock, which ends by itself.
LOCKED_S = 4.0
BACK_S, PATIENCE_S = 20.0, 20.0


class Switch:
    """A Unix socket in front of a service's own: all connections can be cut off."""

    def __init__(self, path: Path, behind: Path) -> None:
        self._path, self._behind = path, behind
        self._opened: list[socket.socket] = []

    def open(self) -> None:
        """Take connections, for those who may connect to the service."""
        listener = socket.socket(socket.AF_UNIX)
        self._opened = [listener]
        listener.bind(str(self._path))
        allowed = self._behind.stat()
        os.chown(self._path, allowed.st_uid, allowed.st_gid)
        self._path.chmod(allowed.st_mode & 0o777)
        listener.listen(512)
        threading.Thread(target=self._accept, args=[listener], daemon=True).start()

    def cut(self) -> None:
        """Close all connections, and take none."""
        self._path.unlink(missing_ok=True)
        for opened in self._opened:
            with suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
            opened.close()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                service = socket.socket(socket.AF_UNIX)
                service.connect(str(self._behind))
                self._opened += [client, service]
                for source, target in ((client, service), (service, client)):
                    threading.Thread(target=_pump, args=[source, target], daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65_536):
            target.sendall(piece)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def switched(scene: FaultContext) -> Iterator[Switch]:
    """Restart the servers with a switch before the caching service, until the block ends."""
    running = scene.running
    name = running.case.services[0].name
    path = Path(running.chain.places.address(name, name).path)
    behind = path.with_suffix(".behind")
    switch = Switch(path, behind)
    running.chain.stop()
    path.rename(behind)
    try:
        switch.open()
        running.chain.start()
        yield switch
    finally:
        running.chain.stop()
        switch.cut()
        behind.rename(path)
        running.chain.start()


@fault("caching-service-cut-off", "hung", misfit=NO_SERVICE)
def caching_service_cut_off(scene: FaultContext) -> Generator[None]:
    """Nobody reaches the caching service for 3 s while a row is edited: with its pages back nobody gets the old one."""
    if not scene.site.has_rows:
        raise FaultNotApplicable(NEEDS_ROWS)
    with switched(scene) as switch:
        visitor = Visitor(scene.target)
        token = {TOKEN: visitor.token(scene.site.url("login")) or ""}

        def post(path: str) -> dict[str, Any]:
            written: dict[str, Any] = json.loads(visitor.post(path, token).text)
            return written

        row = post(ROWS)
        author, page = row["author"], row["probe_page"]
        for _ in range(IN_A_ROW):
            http.get(scene.running.url, page)
        yield
        with scene.cause():
            switch.cut()
            scene.wait(CUT_OFF_S / 2)
            title = post(f"{ROWS}{author}/edit/")["title"]
            scene.wait(CUT_OFF_S / 2)
            switch.open()
        begun = time.monotonic()
        while not _is_new(scene, page, title) and time.monotonic() < begun + FRESH_S:
            scene.wait(POLL_S)
        scene.figures["old_page_s"] = round(time.monotonic() - begun, 3)
        if not _is_new(scene, page, title):
            scene.wrong.append(f"GET {page}: the page from before the edit {FRESH_S:g} s after the service is back")
        yield
        post(f"{ROWS}{author}/remove/")


def _is_new(scene: FaultContext, page: str, title: str) -> bool:
    return all(title in http.get(scene.running.url, page).decode() for _ in range(IN_A_ROW))


@fault("workers-rendering", "killed", Expected(lost=None, recovery_s=None), NO_CACHED_PAGES)
def workers_rendering(scene: FaultContext) -> Generator[None]:
    """All workers are killed while one renders a page: the same page comes 4 s later than another one at most."""
    yield
    path = SLOW.format(secrets.token_hex(4))
    root = psutil.Process(scene.running.pids[application(scene.running.case)])
    with scene.cause(), ThreadPoolExecutor(1) as pool:
        pool.submit(status_of, scene.target, path, SLOW_S)
        time.sleep(SLOW_S / 2)
        workers = root.children(recursive=True)
        for worker in workers:
            with suppress(psutil.Error):
                worker.kill()
    if not workers:
        raise FaultNotApplicable("the application server has no worker processes under a master")
    scene.wait(BACK_S, lambda: status_of(scene.target, QUICK.format(secrets.token_hex(4)), PATIENCE_S) == "200")
    same_s = _seconds(scene, path)
    other_s = _seconds(scene, SLOW.format(secrets.token_hex(4)))
    scene.figures |= {"same_page_s": round(same_s, 3), "other_page_s": round(other_s, 3)}
    if same_s > other_s + LOCKED_S:
        scene.wrong.append(f"GET {path}: after {same_s:.1f} s, another page after {other_s:.1f} s")


def _seconds(scene: FaultContext, path: str) -> float:
    """How long a page takes; what is wrong with it is noted."""
    begun = time.monotonic()
    if (said := status_of(scene.target, path, PATIENCE_S)) != "200":
        scene.wrong.append(f"GET {path}: {said}")
    return time.monotonic() - begun


FAULTS = (workers_rendering, caching_service_cut_off)
