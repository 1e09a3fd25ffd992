"""The job of the load tool, read from the JSON file that its adapter writes."""

from __future__ import annotations

import json
import ssl
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit


@dataclass(frozen=True)
class EngineJob:
    """The load of a trial.

    url          http://127.0.0.1:8000, without a path
    paths        requested in turn
    rate         requests a second of an open loop; None is a closed loop
    seconds      how long requests leave
    timeout_s    seconds after which a request counts as unanswered
    keep_alive   whether connections are reused
    connections  of a closed loop; how many an open loop may open at most
    processes    that share the load
    times        when each request of an open loop is due, in seconds from the start; at the rate where empty
    headers      more header lines of the request for each path, none where empty
    mark         a regular expression of the visits' log (bench.load.openloop.visits); without one there is no log
    """

    url: str
    paths: tuple[str, ...]
    rate: int | None
    seconds: int
    timeout_s: int
    keep_alive: bool
    connections: int
    processes: int
    times: tuple[float, ...] = ()
    headers: tuple[str, ...] = ()
    mark: str = ""

    @classmethod
    def read(cls, path: Path) -> EngineJob:
        """The job in a file. Raises TypeError for missing or unknown fields."""
        content = json.loads(path.read_text("utf-8"))
        lists = {name: tuple(content[name]) for name in ("paths", "times", "headers") if name in content}
        return cls(**content | lists)

    @cached_property
    def address(self) -> tuple[str, int]:
        """Host and port to connect to."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)

    @cached_property
    def tls(self) -> ssl.SSLContext | None:
        """The TLS context of an https URL. It trusts any certificate: the deployment signs its own."""
        return ssl._create_unverified_context() if self.url.startswith("https:") else None

    @cached_property
    def requests(self) -> list[bytes]:
        """The bytes of the request for each path."""
        end = "\r\n" if self.keep_alive else "\r\nConnection: close\r\n"
        host = urlsplit(self.url).netloc
        more = self.headers or ("",) * len(self.paths)
        return [
            f"GET {path} HTTP/1.1\r\nHost: {host}{end}{lines}\r\n".encode()
            for path, lines in zip(self.paths, more, strict=True)
        ]

    def share(self, number: int) -> int:
        """How many of the connections process `number` has, at least one."""
        each, more = divmod(self.connections, self.processes)
        return max(1, each + (number < more))
