"""Where a site is asked: its address, and where connections to that really go."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from bench.errors import BenchError


@dataclass(frozen=True)
class Via:
    """Where connections to a target really go, such as into a tunnel.

    tls      whether it is spoken there
    headers  sent with each request, as a balancer before the target would send them
    """

    host: str
    port: int
    tls: bool
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Target:
    """Where the site is served: the front port of a deployment, or a site that is already running."""

    scheme: str
    host: str
    port: int
    via: Via | None = None

    @classmethod
    def parse(cls, url: str) -> Target:
        """The target at `http://host:port/`; raises BenchError when the text is no such address."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
            raise BenchError(f"--target {url}: not the address of a site; write it as http://127.0.0.1:8000/")
        return cls(parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80))

    @property
    def netloc(self) -> str:
        """Host and port as in a Host header: without the scheme's default port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = {"http": 80, "https": 443}[self.scheme]
        return host if self.port == default else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.netloc}"

    @property
    def tls(self) -> bool:
        """Whether connections speak it."""
        return self.via.tls if self.via else self.scheme == "https"
