"""The caching service dies, hangs or cannot be reached, or each server restarts, while a row is edited."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.measure.faults.edited import (
    edited_rows,
    note_hits,
    require_invalidation,
    require_rows,
    seconds_until_hits,
)
from bench.measure.faults.fault import NO_CACHED_PAGES, NO_SERVICE, Expected, fault
from bench.measure.faults.fault_context import FaultContext
from bench.serve.machine import http

# Duration of the hang: longer than the time limit of a page, so that a wait without a limit shows. A page may wait for
# a render lock that the service could not release (benchapp/caching/render_lock.py, 5 s), and for a worker.
HANGS_S, PAGE_S = 9.0, 8.0
# Requests fail while a server restarts.
RESTARTED = Expected(lost=None, recovery_s=5.0)
# For how long nobody reaches the service, and how soon after that everybody gets the new page.
CUT_OFF_S, FRESH_S = 3.0, 6.0
# Each worker has separate connections: so many requests in a row must get the new page.
IN_A_ROW, POLL_S = 8, 0.05


class Switch:
    """A Unix socket in front of a service's own: all connections can be cut off."""

    def __init__(self, path: Path, behind: Path) -> None:
        self._path, self._behind = path, behind
        self._opened: list[socket.socket] = []

    def open(self) -> None:
        """Accept connections from clients of the service."""
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
    path = Path(running.chain.placed.places.address(name, name).path)
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


@fault("caching-service", "killed", misfit=NO_SERVICE)
def caching_service(scene: FaultContext) -> Generator[None]:
    """The caching service is killed: a row edited meanwhile shows at once, and hits return with the service."""
    name = scene.running.case.services[0].name
    with edited_rows(scene) as edited:
        had_hits = seconds_until_hits(scene) is not None
        yield
        with scene.cause():
            scene.kill(name)
            for row in edited:
                row.edit(f"after an edit without {name}")
        scene.wait_started(name)
        if had_hits:
            note_hits(scene)
        for row in edited:
            row.edit(f"after an edit with {name} back")
        yield


@fault("caching-service-hangs", "hung", Expected(slowest_s=PAGE_S), NO_SERVICE)
def caching_service_hangs(scene: FaultContext) -> Generator[None]:
    """The caching service hangs for 9 s: pages come within 8 s, a row edited meanwhile shows, hits return."""
    name = scene.running.case.services[0].name
    with edited_rows(scene) as edited:
        had_hits = seconds_until_hits(scene) is not None
        yield
        with scene.cause(), scene.running.hung(name):
            scene.wait(HANGS_S / 2)
            for row in edited:
                row.write()
            scene.wait(HANGS_S / 2)
        for row in edited:
            row.shown(f"after an edit while {name} hung")
        if had_hits:
            note_hits(scene)
        for row in edited:
            row.edit(f"after an edit with {name} back")
        yield


@fault("caching-service-cut-off", "hung", misfit=NO_SERVICE)
def caching_service_cut_off(scene: FaultContext) -> Generator[None]:
    """The caching service is unreachable for 3 s while a row is edited: when its pages return, nobody gets the old
    one."""
    require_rows(scene)
    with switched(scene) as switch, edited_rows(scene) as (row,):
        yield
        with scene.cause():
            switch.cut()
            scene.wait(CUT_OFF_S / 2)
            row.write()
            scene.wait(CUT_OFF_S / 2)
            switch.open()
        page, title = row.row.probe_page, row.row.title or ""
        begun = time.monotonic()
        while not _is_new(scene, page, title) and time.monotonic() < begun + FRESH_S:
            scene.wait(POLL_S)
        scene.figures["old_page_s"] = round(time.monotonic() - begun, 3)
        if not _is_new(scene, page, title):
            scene.wrong.append(f"GET {page}: the page from before the edit {FRESH_S:g} s after the service is back")
        yield


def _is_new(scene: FaultContext, page: str, title: str) -> bool:
    return all(title in http.get(scene.running.url, page).decode() for _ in range(IN_A_ROW))


@fault("restarts", "replaced", RESTARTED, NO_CACHED_PAGES)
def restarts(scene: FaultContext) -> Generator[None]:
    """Each server and service restarts right after a row is edited: no page from before the edit comes back."""
    case = scene.running.case
    names = [service.name for service in case.services] + [server.name for server in case.servers]
    require_rows(scene)
    require_invalidation(scene)
    with edited_rows(scene) as (row,):
        yield
        with scene.cause():
            for name in names:
                row.warm()
                row.write()
                scene.running.restart(name)
                row.shown(f"after an edit and a restart of {name}")
        yield


FAULTS = (restarts, caching_service, caching_service_hangs, caching_service_cut_off)
