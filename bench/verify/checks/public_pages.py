"""The pages that a project names as public, for visitors who have cookies of their own."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from bench.verify.browser import Browser
from bench.verify.check import check
from bench.verify.context import Context
from bench.verify.finding import Figure, Finding, Mismatch, NotTried
from bench.verify.hits import MAX_TRIES, is_hit
from bench.verify.layer_facts import caches_pages, obstacle_here, require_visible_hits
from bench.verify.wire import Answer

VISITORS = 12
MAX_PAGES = 8
# How often each visitor reads a page: a cookie that the first answer sets comes with the second request.
READS = 2


@check("public-pages", group="web")
def public_pages(context: Context) -> Iterator[Finding]:
    """Public pages are hits for visitors with cookies of their own, and no hit sets a cookie; the hit ratio is
    reported, and why a page is not cached, by name."""
    if not caches_pages(context):
        raise NotTried("no layer here caches pages")
    require_visible_hits(context)
    if not (paths := context.site.public_paths[:MAX_PAGES]):
        raise NotTried("the project names no public page that answers 200 with HTML")
    hits = requests = 0
    for path in paths:
        answers = _answers(context, path)
        # What another visitor has been given before: a page of one's own is no use to others.
        found = [number for number, answer in enumerate(answers) if is_hit(answer, answers[: number // READS * READS])]
        for line in (line for number in found for line in answers[number].all("Set-Cookie")):
            yield Mismatch(f"GET {path}, a hit: no Set-Cookie", line.partition("=")[0])
        # The first visitor may find it as it was before.
        hits, requests = hits + sum(number >= READS for number in found), requests + len(answers) - READS
        if not found:
            yield _why(context, path, answers)
    yield Figure("hit_ratio_public_pages", hits / requests)


def _answers(context: Context, path: str) -> list[Answer]:
    """The answers to visitors, each with the cookies that the site gives them and one of analytics."""
    answers = []
    for _ in range(VISITORS):
        visitor = Browser(context.target)
        visitor.cookies["_ga"] = f"GA1.1.{secrets.randbelow(10**9)}"
        answers += [visitor.get(path) for _ in range(READS)]
    return answers


def _why(context: Context, path: str, answers: list[Answer]) -> Finding:
    """What keeps a page from being a hit, by the name of the cookie, header or status."""
    if why := obstacle_here(context, *answers):
        return NotTried(f"{path} is not cached: {why}")
    # Without cookies it may be: then it is the visitors' own that stop it.
    plain: list[Answer] = []
    while len(plain) < MAX_TRIES:
        plain.append(context.get(path))
        if is_hit(plain[-1], plain[:-1]):
            visitor = Browser(context.target)
            visitor.get(path)
            names = ", ".join(["_ga", *visitor.cookies])
            return Mismatch(f"GET {path} with cookies of a visitor ({names}): a hit", "it is rendered each time")
    return Mismatch(
        f"GET {path}, {len(answers)} times: a hit", "no cookie, header or status stops it, yet it is rendered"
    )
