"""The job of every load tool, which the engine reads in JSON."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit


@dataclass(frozen=True)
class LoadJob:
    """A closed loop: each of `connections` sends its next request after a response, for `seconds`.

    With a `rate`, an open loop: so many requests a second are due on a schedule regardless of responses, on as many
    connections as needed, up to `connections`.

    base_url    http://127.0.0.1:8000, without a path
    paths       requested in this order, over and over, by every connection
    threads     number of processor cores for the tool, if supported
    timeout_s   seconds until a request counts as failed
    keep_alive  reuse connections
    rate        requests due a second; None in a closed loop

    Only for the engine:

    times       due times of requests instead, in seconds from the start
    headers     additional header lines for each path; may be empty
    mark        a regular expression: its groups in each response of an open loop go to a log (see `visits`)
    own         numbers of the processes started here; empty: all
    begins      start of the load, in seconds by this machine's clock; None: as soon as possible
    connect     HOST:PORT destination of connections, if not the URL's
    trust       additional certificates (PEM) for an https URL; None: accept any, because a deployment on this machine
                signs its own
    """

    base_url: str
    paths: tuple[str, ...]
    connections: int
    seconds: int
    threads: int = 1
    timeout_s: int = 10
    keep_alive: bool = True
    rate: int | None = None
    times: tuple[float, ...] = ()
    headers: tuple[str, ...] = ()
    mark: str = ""
    own: tuple[int, ...] = ()
    begins: float | None = None
    connect: str = ""
    trust: str | None = None

    @property
    def processes(self) -> int:
        """Number of the engine's processes: at most one for each connection, and a log needs a single process."""
        if self.mark:
            return 1
        return min(self.threads, self.connections)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the processes started here."""
        return self.own or tuple(range(self.processes))

    @property
    def name(self) -> str:
        """The host name of the URL, for its certificate."""
        return urlsplit(self.base_url).hostname or ""

    @cached_property
    def address(self) -> tuple[str, int]:
        """Host and port to connect to."""
        parts, usual = urlsplit(self.base_url), 80
        if self.base_url.startswith("https:"):
            usual = 443
        if self.connect:
            parts = urlsplit(f"//{self.connect}")
        return parts.hostname or "", parts.port or usual

    @cached_property
    def tls(self) -> ssl.SSLContext | None:
        """The TLS context of an https URL."""
        if not self.base_url.startswith("https:"):
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
        end = "\r\nConnection: close\r\n"
        if self.keep_alive:
            end = "\r\n"
        host = urlsplit(self.base_url).netloc
        more = self.headers or ("",) * len(self.paths)
        messages = []
        for path, lines in zip(self.paths, more, strict=True):
            messages.append(f"GET {path} HTTP/1.1\r\nHost: {host}{end}{lines}\r\n".encode())
        return messages

    def share(self, number: int) -> int:
        """Number of connections of process `number`, at least one."""
        each, more = divmod(self.connections, self.processes)
        return max(1, each + (number < more))
