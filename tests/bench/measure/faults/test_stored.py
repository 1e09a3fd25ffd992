"""Stored pages due for removal, a full store, and an unreachable service."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest

from bench.measure.faults import rendering, stored
from bench.measure.faults.caching_service import Switch
from bench.measure.faults.fault_context import FaultNotApplicable
from tests.bench.measure.faults.scenes import run, scene
from tests.bench.measure.faults.slow_server import slow_server

pytestmark = pytest.mark.servers


def test_the_program_beside_the_servers_hangs_and_goes_on():
    context = scene()
    context.running.case.sidecars = {"expirepages": ()}
    assert run("sidecar-stopped", context) == ["|", "expirepages hangs", "wait", "expirepages goes on"]


def test_the_application_server_hangs_with_all_its_instances():
    context = scene(servers=("app-1", "app-2", "front"))
    assert run("application-away", context)[:3] == ["|", "app-1 hangs", "app-2 hangs"]


def test_stored_files_are_an_hour_ahead(tmp_path: Path):
    (tmp_path / "pages").mkdir()
    page = tmp_path / "pages" / "index.html"
    page.write_text("page")
    with slow_server() as target:
        run("clock-set-back", scene(url=target.origin, store=tmp_path))
    assert 3590 < page.stat().st_mtime - time.time() < 3610


@pytest.mark.parametrize("name", ["clock-set-back", "made-up-pages"])
def test_a_layer_in_memory_has_no_files(tmp_path: Path, name: str):
    (tmp_path / "purged").write_text("word")
    with slow_server() as target, pytest.raises(FaultNotApplicable, match="stores pages in files"):
        run(name, scene(url=target.origin, store=tmp_path))


@pytest.mark.parametrize(("kilobytes", "wrong"), [(100, 0), (12_000, 1)])
def test_a_store_that_takes_more_than_its_room_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kilobytes: int, wrong: int
):
    monkeypatch.setattr(stored, "MADE_UP", 20)
    (tmp_path / "page").write_bytes(b"x" * kilobytes * 1024)
    with slow_server() as target:
        context = scene(url=target.origin, store=tmp_path)
        context.supervisor.wait = lambda until, seconds: time.sleep(seconds)
        run("made-up-pages", context)
    assert context.figures["made_up_pages"] == 20
    assert context.figures["store_mb"] == pytest.approx(kilobytes / 1024, abs=0.2)
    assert len(context.wrong) == wrong


def test_a_switch_cuts_connections_off_and_takes_new_ones_later(tmp_path: Path):
    path, behind = tmp_path / "cache.sock", tmp_path / "cache.behind"
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(str(behind))
        service.listen()
        threading.Thread(target=_echo, args=[service], daemon=True).start()
        switch = Switch(path, behind)
        switch.open()
        with _connected(path) as client:
            client.sendall(b"one")
            assert client.recv(10) == b"one"
            switch.cut()
            assert client.recv(10) == b""
        assert not path.exists()
        switch.open()
        with _connected(path) as client:
            client.sendall(b"two")
            assert client.recv(10) == b"two"
        switch.cut()


def _connected(path: Path) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(10)
    client.connect(str(path))
    return client


def _echo(service: socket.socket) -> None:
    while True:
        try:
            client, _ = service.accept()
        except OSError:
            return
        with client:
            while piece := client.recv(100):
                client.sendall(piece)


def test_a_page_that_waits_for_a_dead_worker_is_seen(monkeypatch: pytest.MonkeyPatch):
    """The same page takes two seconds longer than another one, and then five, for one waiting client."""
    monkeypatch.setattr(rendering.psutil, "Process", lambda pid: _Master())
    monkeypatch.setattr(rendering, "status_of", lambda *_: "200")
    for took, wrong in (([3.0, 1.0, 3.0, 1.0], 0), ([3.0, 1.0, 6.0, 1.0], 1)):
        seconds = iter(took)
        monkeypatch.setattr(rendering, "_seconds", lambda *_, seconds=seconds: next(seconds))
        context = scene()
        run("render-lock-holder-killed", context)
        assert len(context.wrong) == wrong


class _Master:
    """A process with a worker."""

    def children(self, recursive: bool) -> list[_Master]:
        return [self]

    def kill(self) -> None:
        """Nothing runs."""
