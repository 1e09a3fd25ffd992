"""Stored pages of a layer: their lifetime and size."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

from bench.measure.faults.fault import NO_CACHED_PAGES, NO_SIDECAR, Expected, fault
from bench.measure.faults.fault_context import FaultContext, FaultNotApplicable, application, instances, status_of
from bench.measure.faults.fault_threads import in_threads
from bench.measure.faults.visitors import PAGE
from bench.paths import entries_below
from bench.serve.machine import http

# A time to live that ends several times during a fault.
TTL_S = 8
LIVES = 2
# A clock that is set back by so much.
BACK_S = 3600
# The room of a layer, and how many pages are made up to fill it three times, within so many seconds.
ROOM_MB, MADE_UP, MADE_UP_S = 8, 3000, 40.0
CLIENTS, PATIENCE_S, LOOK_S = 8, 10.0, 0.2
# Files of the store itself, and a growing folder, in addition to the pages.
ALLOWED_MB = ROOM_MB * 1.1
BLOCK_BYTES = 512
# The generation of layers in memory.
NOT_PAGES = ("purged",)


@fault("sidecar-stopped", "hung", misfit=NO_SIDECAR, cache_seconds=TTL_S)
def sidecar_stopped(scene: FaultContext) -> Generator[None]:
    """The sidecar that removes old pages is stopped for 16 s, at a time to live of 8 s."""
    yield
    with scene.cause(), scene.hung(scene.running.case.sidecars):
        scene.wait(LIVES * TTL_S)


@fault("clock-set-back", "hung", misfit=NO_CACHED_PAGES, cache_seconds=TTL_S)
def clock_set_back(scene: FaultContext) -> Generator[None]:
    """All stored pages are an hour ahead, as after setting back the clock, at a time to live of 8 s."""
    require_files(scene)
    yield
    with scene.cause():
        for file in _files(scene.running.store):
            with suppress(FileNotFoundError):
                changed = file.stat().st_mtime
                os.utime(file, (changed + BACK_S, changed + BACK_S))
        scene.wait(LIVES * TTL_S)


@fault("application-away", "hung", Expected(lost=None, recovery_s=None), NO_CACHED_PAGES, cache_seconds=TTL_S)
def application_away(scene: FaultContext) -> Generator[None]:
    """The application server hangs for 16 s: stored pages are served for their time to live of 8 s."""
    yield
    servers = instances(application(scene.running.case), scene.running.servers)
    with scene.cause(), scene.hung(servers):
        scene.wait(LIVES * TTL_S)


@fault("made-up-pages", "abused", misfit=NO_CACHED_PAGES, cache_memory_mb=ROOM_MB)
def made_up_pages(scene: FaultContext) -> Generator[None]:
    """3,000 made-up pages in 40 s, with room for 8 MB: files and folders of the store never take more."""
    require_files(scene)
    yield
    numbers, most_mb = count(), 0.0
    deadline = time.monotonic() + MADE_UP_S

    def request_pages(over: threading.Event) -> None:
        while not over.is_set() and (number := next(numbers)) < MADE_UP:
            status_of(scene.target, PAGE.format(f"made-up-{number}"), PATIENCE_S)

    with scene.cause(), in_threads([request_pages] * CLIENTS) as clients:
        while time.monotonic() < deadline and not all(client.done() for client in clients):
            scene.wait(LOOK_S)
            most_mb = max(most_mb, disk_bytes(scene.running.store) / 2**20)
    most_mb = max(most_mb, disk_bytes(scene.running.store) / 2**20)
    scene.figures |= {"made_up_pages": min(next(numbers), MADE_UP), "store_mb": round(most_mb, 1)}
    if most_mb > ALLOWED_MB:
        scene.wrong.append(f"stored pages took {most_mb:.1f} MB on the disk, {ROOM_MB} MB are allowed")


def disk_bytes(folder: Path) -> int:
    """Disk usage of a folder with all its contents."""
    total = 0
    for path in entries_below(folder):
        with suppress(FileNotFoundError):
            total += path.lstat().st_blocks * BLOCK_BYTES
    return total


def _files(store: Path) -> Iterator[Path]:
    return (path for path in entries_below(store) if path.is_file())


def require_files(scene: FaultContext) -> None:
    """Raise FaultNotApplicable if a page is not stored as a file."""
    path = scene.site.url("home")
    # The second response comes from the store, if the layer stores pages.
    for _ in range(2):
        http.status(scene.running.url, path)
    # Layers in memory have one file there, with their generation.
    if not any(file.name not in NOT_PAGES for file in _files(scene.running.store)):
        raise FaultNotApplicable("no server here stores pages in files")


FAULTS = (sidecar_stopped, clock_set_back, application_away, made_up_pages)
