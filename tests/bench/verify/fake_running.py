"""The fake deployment of a fake site, its service and its disk."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psutil

from tests.bench.verify.fake_writes import FakeWrites


class FakeRunning:
    """The parts of a deployment that the checks use."""

    def __init__(self, stub: FakeWrites, url: str, case: object, pids: dict[str, int]):
        self.stub, self.url, self.case, self.pids = stub, url, case, pids
        self.env = {"FAKE_URL": url}
        self.store: Path = stub.files
        self.ready_s = 0.0
        stub.workers = lambda: [child.pid for pid in pids.values() for child in psutil.Process(pid).children()]

    @contextlib.contextmanager
    def again(self, changes: dict):
        self.stub.ttl_s = changes.get("cache_seconds", self.stub.ttl_s)
        yield self

    @contextlib.contextmanager
    def on_small_disk(self):
        self.stub.store = {}
        yield FakeDisk(self.stub)
        self.stub.hits_return = True

    def restart(self, name: str) -> None:
        self.stub.store = self.stub.purged if "restart-brings-back" in self.stub.wrong else {}

    @contextlib.contextmanager
    def without_service(self, name: str):
        self.stub.service_up, self.stub.store = False, {}
        try:
            yield
        finally:
            self.stub.service_up = True
            self.stub.hits_return = "no-hits-after" not in self.stub.wrong

    @contextlib.contextmanager
    def hung(self, name: str):
        held = self.stub.store
        with self.without_service(name):
            self.stub.hangs = True
            yield
        self.stub.hangs = False
        if "forgets-what-it-was-not-told" in self.stub.wrong:
            self.stub.store = held


class FakeDisk:
    """The disk under the store of the fake layer."""

    def __init__(self, stub: FakeWrites):
        self.stub = stub

    def fill(self) -> None:
        self.stub.disk_full = True

    fill_names = fill

    def free(self) -> None:
        self.stub.disk_full = False
        self.stub.hits_return = "full-disk-forever" not in self.stub.wrong
