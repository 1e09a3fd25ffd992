"""The job of the load tool, as its adapter writes it in JSON."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

LISTS = ("paths", "times", "headers", "own")


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
    own          numbers of the processes that are started here; all of them where empty
    begins       when the load begins, in seconds by this machine's clock; None: as soon as it can
    connect      HOST:PORT where connections go, if not to that of the URL
    trust        certificates (PEM) beside those of this machine to verify an https URL by; None: any certificate,
                 because a deployment on this machine signs its own
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
    own: tuple[int, ...] = ()
    begins: float | None = None
    connect: str = ""
    trust: str | None = None

    @classmethod
    def of(cls, content: dict[str, Any]) -> EngineJob:
        """The job in an object of JSON. Raises TypeError for missing or unknown fields."""
        lists: dict[str, Any] = {name: tuple(content[name]) for name in LISTS if name in content}
        return cls(**content | lists)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the processes that are started here."""
        return self.own or tuple(range(self.processes))

    @property
    def name(self) -> str:
        """The host name of the URL, which a certificate is for."""
        return urlsplit(self.url).hostname or ""

    @cached_property
    def address(self) -> tuple[str, int]:
        """Host and port to connect to."""
        parts = urlsplit(f"//{self.connect}" if self.connect else self.url)
        return parts.hostname or "", parts.port or (443 if self.url.startswith("https:") else 80)

    @cached_property
    def tls(self) -> ssl.SSLContext | None:
        """The TLS context of an https URL."""
        if not self.url.startswith("https:"):
            return None
        if self.trust is None:
            return ssl._create_unverified_context()
        context = ssl.create_default_context()
        if self.trust:
            context.load_verify_locations(cadata=self.trust)
        return context

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
