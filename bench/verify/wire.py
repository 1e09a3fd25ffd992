"""Responses read as pages: the text of a body, and the paragraphs of a probe page."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bench.serve.machine.http import BadResponse, ClientConnection, Headers, Response, Target
from bench.serve.project.venv_overlay import servers_module
from bench.verify import page_parser
from bench.verify.mismatch import Mismatch

# The paragraphs about the rendering are in the first bytes of a probe page.
PAGE_HEAD_BYTES = 8000


@dataclass(frozen=True)
class PageResponse(Response):
    """A response, perhaps a page."""

    @property
    def content_type(self) -> str:
        """Media type and charset without spaces, in lower case; empty if absent."""
        return "".join((self.header("Content-Type") or "").lower().split())

    @property
    def header_names(self) -> set[str]:
        """The names of its headers, in lower case."""
        return {name.lower() for name, _ in self.headers}

    @property
    def render_id(self) -> str | None:
        return self.header("X-Render-Id")

    @property
    def coding(self) -> str:
        """The content coding, `identity` without one."""
        return (self.header("Content-Encoding") or "identity").strip().lower()

    @cached_property
    def content(self) -> bytes:
        """The body with its content coding removed; raises BadResponse if the coding is wrong."""
        try:
            if self.coding == "gzip":
                return gzip.decompress(self.body)
            if self.coding == "br":
                return bytes(servers_module("brotli").decompress(self.body))
        except Exception as error:
            raise BadResponse(f"a body that is not {self.coding}, unlike its Content-Encoding: {error}") from None
        if self.coding != "identity":
            raise BadResponse(f"Content-Encoding {self.coding}, which was not requested")
        return self.body

    @cached_property
    def text(self) -> str:
        return page_parser.decoded(self.content, self.header("Content-Type") or "")

    @cached_property
    def paragraphs(self) -> dict[str, str]:
        """The paragraphs of a probe page, about its rendering and its request, by name."""
        head = self.content[:PAGE_HEAD_BYTES].decode("utf-8", "replace").replace("\0", "\ufffd")
        return page_parser.ParsedPage(head).paragraphs

    def wrong(self, expected: str, got: str | None = None, what: str = "", excuse: str = "") -> Mismatch:
        """The mismatch of this response; `got` defaults to the status, `what` describes the request."""
        if got is None:
            got = f"status {self.status}"
        return Mismatch(f"{what or self.sent}: {expected}", got, self.sent, excuse)


class Connection(ClientConnection[PageResponse]):
    """A connection with responses read as pages."""

    response = PageResponse


def fetch(target: Target, path: str | bytes, headers: Headers = (), method: str = "GET", **how: Any) -> PageResponse:
    """Send one request on a new connection; `how` is body, host and version: see build."""
    with Connection(target) as connection:
        return connection.exchange(method, path, headers, **how)
