"""Loaded by Locust beside a locustfile: says where the site is, and writes the figures that Locust counted at its end.

Locust runs it on every host, where nothing of the instrument is. `settings.json` beside it holds `name` and `address`
(connections to the name go to that address), and `headers`, which every request has.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import gevent.socket
import locust
from locust import HttpUser, events
from locust.runners import MasterRunner

SETTINGS = json.loads(Path("settings.json").read_text("utf-8"))
PERCENTILES = (50, 95, 99)


def resolve() -> None:
    """Have the name of the site mean its address, whatever the host's resolver says."""
    if not SETTINGS["address"]:
        return
    asked = socket.getaddrinfo

    def getaddrinfo(host: Any, *more: Any, **named: Any) -> Any:
        return asked(
            SETTINGS["address"] if host in (SETTINGS["name"], SETTINGS["name"].encode()) else host, *more, **named
        )

    socket.getaddrinfo = getaddrinfo
    gevent.socket.getaddrinfo = getaddrinfo


def add_headers(user: Any) -> None:
    """Have all requests of a class of users carry the headers."""
    if issubclass(user, HttpUser):
        begin = user.__init__

        def begin_with_headers(self: Any, *arguments: Any, **named: Any) -> None:
            begin(self, *arguments, **named)
            self.client.headers.update(SETTINGS["headers"])

        user.__init__ = begin_with_headers
    elif hasattr(user, "default_headers"):
        user.default_headers = {**SETTINGS["headers"], **(user.default_headers or {})}


def prepare(environment: Any, **_: Any) -> None:
    """Prepare every class of users."""
    resolve()
    if SETTINGS["headers"]:
        for user in environment.user_classes:
            add_headers(user)


def write(environment: Any, **_: Any) -> None:
    """Write what the master has added up."""
    if not isinstance(environment.runner, MasterRunner):
        return
    stats = environment.stats
    entries = [counted(entry) for entry in (*stats.entries.values(), stats.total)]
    failures = [
        {"method": error.method, "name": error.name, "error": str(error.error), "occurrences": error.occurrences}
        for error in stats.errors.values()
    ]
    figures = {"version": locust.__version__, "requests": entries, "failures": failures}
    Path("figures.json").write_text(json.dumps(figures), "utf-8")


def counted(entry: Any) -> dict[str, Any]:
    """An entry of Locust's table in our names, by its own functions."""
    times = {f"latency_p{percent}_ms": entry.get_response_time_percentile(percent / 100) for percent in PERCENTILES}
    return times | {
        "method": entry.method or "",
        "name": entry.name,
        "requests": entry.num_requests,
        "failures": entry.num_failures,
        "requests_per_second": entry.total_rps,
        "latency_mean_ms": entry.avg_response_time,
        "latency_max_ms": entry.max_response_time,
    }


events.init.add_listener(prepare)
events.quitting.add_listener(write)
