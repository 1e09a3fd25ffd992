"""Memory or room on a disk runs out."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measure.faults.fault import ANY, NO_CACHED_PAGES, NO_MEMORY_LIMIT, fault
from bench.measure.faults.fault_context import FaultContext, FaultNotApplicable
from bench.serve.machine import http
from bench.serve.machine.small_disk import CannotMount, SmallDisk

FULL_S = 3.0
# A page that uses so many megabytes; a worker that does is killed at the limit.
MEMORY = "/__probe__/memory/{}/"
TIMES = 2
MEMORY_TIMEOUT_S = 10.0


@fault("memory", "starved", ANY, NO_MEMORY_LIMIT)
def memory(scene: FaultContext) -> Generator[None]:
    """Two requests need as much memory as the size has: the kernel kills processes at the limit."""
    megabytes, before = scene.running.case.size.burstable_mb * 2**20 // 10**6, scene.running.oom_kills() or 0
    yield
    with scene.cause():
        for _ in range(TIMES):
            http.status(scene.running.url, MEMORY.format(megabytes), MEMORY_TIMEOUT_S)
            scene.wait(1.0)
    yield
    kills = (scene.running.oom_kills() or 0) - before
    scene.figures["oom_kills"] = kills
    if not kills:
        scene.wrong.append("no process was killed at the limit of memory")


@fault("full-store", "starved", misfit=NO_CACHED_PAGES)
def full_store(scene: FaultContext) -> Generator[None]:
    """The disk of stored pages is full for 3 s; then there is room again."""
    with _small_disk(scene, scene.running.store) as disk:
        # The second time it comes from the store, where there is one.
        for _ in range(2):
            http.status(scene.running.url, scene.site.url("home"))
        if not any(path.is_file() for path in scene.running.store.rglob("*")):
            raise FaultNotApplicable("no server here stores pages in files")
        yield from _filled(scene, disk)


@fault("full-logs", "starved")
def full_logs(scene: FaultContext) -> Generator[None]:
    """The disk of the logs is full for 3 s; then there is room again."""
    with _small_disk(scene, scene.running.logs) as disk:
        yield from _filled(scene, disk)


@contextmanager
def _small_disk(scene: FaultContext, folder: Path) -> Iterator[SmallDisk]:
    """A directory of the servers on a small disk of its own. Raises FaultNotApplicable where none can be mounted."""
    try:
        with scene.running.on_small_disk(folder) as disk:
            yield disk
    except CannotMount as error:
        raise FaultNotApplicable(str(error)) from None


def _filled(scene: FaultContext, disk: SmallDisk) -> Generator[None]:
    yield
    with scene.cause():
        disk.fill()
        scene.wait(FULL_S)
        disk.free()
    yield


FAULTS = (memory, full_store, full_logs)
