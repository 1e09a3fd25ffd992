"""A scene on a made-up deployment: actions are logged, and time does not pass."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

from bench.measure.faults.fault_context import FaultContext
from bench.measure.faults.kinds import FAULTS

SITE = SimpleNamespace(
    url={"home": "/", "login": "/login/", "health": "/health"}.__getitem__,
    has_rows=True,
    description=SimpleNamespace(strict=False),
)


class Chain:
    """Servers that log every action."""

    placed = SimpleNamespace(places=SimpleNamespace(bind="127.0.0.1", port=1))

    def __init__(self, log):
        self.log, self.done, self.reloads, self.servers = log, {"app": "reloaded by SIGHUP"}, True, []

    def reload(self, changed, only):
        self.log.append(f"reload {only}".strip())
        return self.done

    def reload_application(self):
        self.log.append("reload application")
        return self.reloads

    def restart(self, name):
        self.log.append(f"restart {name}")


class Versions:
    """Releases that are only counted."""

    word, served = "release-1", "1"

    def __init__(self, log):
        self.log = log

    def new(self, broken=False):
        self.log.append("new broken" if broken else "new")
        return "2"

    def switch(self, folder):
        self.log.append(f"switch to {folder}")
        self.served, self.word = folder, f"release-{folder}"


def scene(**running) -> FaultContext:
    """A scene; `running` has attributes of its deployment. `scene.log` has the actions."""
    log: list[str] = []
    case = SimpleNamespace(
        project=SimpleNamespace(worker=lambda *folder: SimpleNamespace(give_tree=lambda folder: None)),
        servers=(SimpleNamespace(name="app"), SimpleNamespace(name="front")),
        services=(SimpleNamespace(name="cache"),),
        database=SimpleNamespace(service="db", label="sqlite"),
        size=SimpleNamespace(is_limited=True, burstable_mb=256),
        caches="pages",
        settings={"cache_seconds": 60},
        threads=1,
    )

    @contextmanager
    def until_the_end(before, after):
        log.append(before)
        yield SimpleNamespace(fill=lambda: log.append("full"), free=lambda: log.append("room"))
        log.append(after)

    fields = {
        "url": "http://127.0.0.1:1",
        "case": case,
        "chain": Chain(log),
        "processes": [SimpleNamespace(name=name) for name in ("app-1", "app-2", "front", "cache", "db")],
        "pids": {"app": 11, "front": 12, "cache": 13, "db": 14},
        "hung": lambda name: until_the_end(f"{name} hangs", f"{name} goes on"),
        "on_small_disk": lambda folder: until_the_end(f"small disk for {folder}", "disk"),
        "logs": "logs",
        "ready_s": 1.0,
        "layout": SimpleNamespace(tls="", run_dir=""),
        "env": {"DATABASE_URL": "sqlite://"},
        "services": SimpleNamespace(wait_serving=log.append),
        "is_healthy": lambda: True,
        **running,
    }
    supervisor = SimpleNamespace(deaths=[], step=lambda: None)
    supervisor.wait = lambda until, seconds: (log.append("wait"), until())[1]
    context = FaultContext(SimpleNamespace(**{"servers": (), **fields}), supervisor, Versions(log), SITE, 200)
    context.log = log
    return context


def run(name: str, scene: FaultContext) -> list[str]:
    """Run all steps of a fault; returns the actions, with `|` for arrival and departure of the visitors."""
    for _ in FAULTS[name].run(scene):
        scene.log.append("|")
    assert scene.moments.over >= scene.moments.struck > 0
    return scene.log
