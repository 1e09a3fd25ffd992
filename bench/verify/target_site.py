"""A site that runs already and is known only by its address (`verify --target` without --database)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.errors import BenchError
from bench.verify import page_parser, wire
from bench.verify.finding import NEEDS_DATABASE, NotTried
from bench.verify.site import Account, Expected, Site
from bench.verify.wire import BadAnswer, Target

KNOWN = {"home": "/", "authors": "/authors/", "posts": "/posts/", "comments": "/comments/"}
# Kind of URL -> the pages on which to look for a link of that kind.
LINKED = {
    "post": ("/", "/posts/"),
    "author": ("/", "/authors/"),
    "posts_page": ("/posts/",),
    "authors_page": ("/authors/",),
    "comments_page": ("/comments/",),
}
PATTERNS = {
    "post": r"/posts/[1-9][0-9]*/",
    "author": r"/authors/[1-9][0-9]*/",
    "posts_page": r"/posts/page/2/",
    "authors_page": r"/authors/page/2/",
    "comments_page": r"/comments/page/2/",
}


class NoExpectedPages(Mapping[str, Expected]):
    """Stands in for expected pages that cannot be rendered in process: each look-up raises NotTried."""

    def __getitem__(self, path: str) -> Expected:
        raise NotTried(NEEDS_DATABASE)

    def __iter__(self) -> Iterator[str]:
        raise NotTried(NEEDS_DATABASE)

    def __len__(self) -> int:
        raise NotTried(NEEDS_DATABASE)


class TargetSite(Site):
    """A site without its database: its pages cannot be rendered in process, and no account can be made."""

    has_database = False

    def url(self, *kinds: str) -> str:
        found = next((self.urls[kind] for kind in kinds if kind in self.urls), None)
        if found is None:
            raise NotTried(f"no page of the site links to a {kinds[-1]}: load rows with ./manage.py loadfixtures")
        return found

    def create_accounts(self, count: int, env: Mapping[str, str] | None = None) -> list[Account]:
        raise NotTried(NEEDS_DATABASE)

    def is_outdated(self) -> bool:
        return False

    def remove_probes(self, env: Mapping[str, str] | None = None) -> None:
        raise NotTried(NEEDS_DATABASE)


def require_answer(target: Target) -> None:
    """Raise BenchError unless a site of this project answers there."""
    try:
        answer = wire.fetch(target, "/healthz")
    except (OSError, BadAnswer) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise BenchError(
            f"--target {target.origin}/: no answer ({why}); start the site, or correct the address, then try again"
        ) from None
    if answer.status != 200:
        raise BenchError(
            f"--target {target.origin}/: GET /healthz answers with status {answer.status}, not 200: is it a site of "
            "this project, and is the host in its ALLOWED_HOSTS?"
        )


def target_site(target: Target, static: Path) -> TargetSite:
    """Learn the site's URLs from the links on its pages; raises BenchError when they cannot be read."""
    urls = {**KNOWN, "login": "/login/", "healthz": "/healthz"}
    try:
        for kind, sources in LINKED.items():
            found = next(filter(None, (_linked(target, source, PATTERNS[kind]) for source in sources)), None)
            urls |= {kind: found} if found else {}
    except (OSError, BadAnswer) as error:
        raise BenchError(f"--target {target.origin}/: {error}") from None
    if "post" in urls:
        urls["post_with_comments"] = urls["post"]
    return TargetSite(urls, NoExpectedPages(), static, Path("python"), Path("manage.py"))


def _linked(target: Target, source: str, pattern: str) -> str | None:
    links = page_parser.parse(wire.fetch(target, source).text, source).links
    return next((link for link in links if re.fullmatch(pattern, link)), None)
