"""A site that runs already, of which only the address is known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.errors import BenchError
from bench.verify import page, wire
from bench.verify.outcome import NEEDS, NotAsked
from bench.verify.site import Account, Expected, Site
from bench.verify.wire import BadAnswer, Target

KNOWN = {"home": "/", "authors": "/authors/", "posts": "/posts/", "comments": "/comments/"}
# Kinds of URLs that a link on the home page or on a list shows.
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


class Unasked(Mapping):
    """Pages that cannot be rendered in process: whoever looks is told why not."""

    def __getitem__(self, path: str) -> Expected:
        raise NotAsked(NEEDS)

    def __iter__(self) -> Iterator[str]:
        raise NotAsked(NEEDS)

    def __len__(self) -> int:
        raise NotAsked(NEEDS)


class UnknownSite(Site):
    """A site whose database is not at hand: its pages cannot be rendered in process, no account can be made."""

    known = False

    def url(self, *kinds: str) -> str:
        found = next((self.urls[kind] for kind in kinds if kind in self.urls), None)
        if found is None:
            raise NotAsked(f"no page of the site links to a {kinds[-1]}: load rows with ./manage.py loadfixtures")
        return found

    def create_account(self, env: Mapping[str, str] | None = None) -> Account:
        raise NotAsked(NEEDS)

    def remove_probes(self, env: Mapping[str, str] | None = None) -> None:
        raise NotAsked(NEEDS)


def must_answer(target: Target) -> None:
    """Raise BenchError unless something that speaks HTTP answers there."""
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


def unknown_site(target: Target, static: Path) -> UnknownSite:
    """What can be known of the site from its pages; raises BenchError when they cannot be read."""
    urls = {**KNOWN, "login": "/login/", "healthz": "/healthz"}
    try:
        for kind, sources in LINKED.items():
            found = next(filter(None, (_linked(target, source, PATTERNS[kind]) for source in sources)), None)
            urls |= {kind: found} if found else {}
    except (OSError, BadAnswer) as error:
        raise BenchError(f"--target {target.origin}/: {error}") from None
    if "post" in urls:
        urls["post_with_comments"] = urls["post"]
    return UnknownSite(urls, Unasked(), static, Path("python"), Path("manage.py"))


def _linked(target: Target, source: str, pattern: str) -> str | None:
    links = page.read(wire.fetch(target, source).text, source).links
    return next((link for link in links if re.fullmatch(pattern, link)), None)
