"""A running site, known by its address and its description (`verify --target` without --database)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.errors import BenchError
from bench.serve.machine.http import HEALTHY, BadResponse, Target
from bench.serve.project.opened import UnderTest
from bench.serve.project.run_command import Interpreter
from bench.verify import page_parser, wire
from bench.verify.in_process import ExpectedPage
from bench.verify.mismatch import NEEDS_DATABASE, NotTried
from bench.verify.site import Site, described_urls, static_urls

# No command is run.
NO_COMMANDS = Interpreter((), Path(), Path())
# Patterns of pages below the public page that links to them.
LISTED, DETAIL = re.compile(r"[^/?#]+/2/"), re.compile(r"[1-9][0-9]*/")


class NoExpectedPages(Mapping[str, ExpectedPage]):
    """Stand-in for expected pages that cannot be rendered in process: each look-up raises NotTried."""

    def __getitem__(self, path: str) -> ExpectedPage:
        raise NotTried(NEEDS_DATABASE)

    def __iter__(self) -> Iterator[str]:
        raise NotTried(NEEDS_DATABASE)

    def __len__(self) -> int:
        raise NotTried(NEEDS_DATABASE)


def require_response(target: Target, health: str) -> None:
    """Raise BenchError unless a site of this project responds; `health` is the path of its health page."""
    try:
        response = wire.fetch(target, health)
    except (OSError, BadResponse) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise BenchError(
            f"--target {target.origin}/: no response ({why}); start the site, or correct the address, then try again"
        ) from None
    if response.status not in HEALTHY:
        raise BenchError(
            f"--target {target.origin}/: GET {health} has status {response.status}, not 2xx: is it a site of "
            "this project, and is the host in its ALLOWED_HOSTS?"
        )


def target_site(target: Target, project: UnderTest) -> Site:
    """Learn the site's URLs from its description and the links on its public pages.

    Raises BenchError if a page cannot be read.
    """
    description, static, static_url = project.description, project.folder / "static", project.names["static_url"]
    urls = described_urls(description) | static_urls(static, static_url)
    try:
        for path in description.public:
            for link in page_parser.ParsedPage(wire.fetch(target, path).text, path).links:
                rest = ""
                if path != "/" and link.startswith(path):
                    rest = link.removeprefix(path)
                for kind, pattern in (("list", LISTED), ("detail", DETAIL)):
                    if pattern.fullmatch(rest):
                        urls = {kind: link, "section": path} | urls
    except (OSError, BadResponse) as error:
        raise BenchError(f"--target {target.origin}/: {error}") from None
    place = (static, static_url, NO_COMMANDS)
    return Site(urls, NoExpectedPages(), *place, description=description, has_database=False)
