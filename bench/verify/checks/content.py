"""A cached answer is what was rendered: its bytes, their content coding, and its headers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import permutations

from bench.verify.cacheability import different_headers
from bench.verify.check import check
from bench.verify.checks.pages import VOLATILE
from bench.verify.context import Context
from bench.verify.finding import Figure, Finding, Mismatch
from bench.verify.hits import new_path, paragraphs, render_id, require_probes, until_hit
from bench.verify.wire import Answer, BadAnswer

CODINGS = ("identity", "gzip", "br")
LARGE_BYTES = 1_200_000
# Range -> the part of a page. Each part has most of the probe's render id or nothing of it; the last is beyond its end.
PARTS = {"0-99": slice(0, 100), "200-": slice(200, None), "-100": slice(-100, None), "9999999-": slice(9_999_999, None)}
LONG_AGO = "Sat, 01 Jan 2000 00:00:00 GMT"
_ID = re.compile(rb"[0-9a-f]{24,}")
# Views whose pages have headers that other pages have not.
SPECIAL_VIEWS = ("own-policy", "own-headers", "etag", "lasting", "latin", "plain-text")
# Headers that a cache may add: where an answer came from, and its age.
ADDED = frozenset(["x-cache", "x-cache-hits", "cache-status", "server"])


@check("codings", group="bytes")
def codings(context: Context) -> Iterator[Finding]:
    """Clients of identity, gzip and br, in every order, get a body that matches its headers and that they accept."""
    require_probes(context)
    for view in ("page", "coded"):
        for order in permutations(CODINGS):
            path = new_path(view)
            for coding in (*order, *order):
                yield from _wrong_coding(path, coding, context.get(path, {"Accept-Encoding": coding}))


def _wrong_coding(path: str, asked: str, answer: Answer) -> Iterator[Mismatch]:
    what = f"GET {path} with Accept-Encoding: {asked}"
    coding = (answer.header("Content-Encoding") or "identity").strip().lower()
    if coding not in ("identity", asked):
        yield Mismatch(f"{what}: {asked}, or not coded", f"Content-Encoding: {coding}")
        return
    try:
        shown_path = paragraphs(answer).get("path")
    except BadAnswer as error:
        yield Mismatch(f"{what}: a body that is {coding}", str(error))
        return
    if shown_path != path or not answer.content.rstrip().endswith(b"</html>"):
        yield Mismatch(f"{what}: the whole page", f"{len(answer.content)} bytes of the page of {shown_path}")
    if coding != "identity" and "accept-encoding" not in (answer.header("Vary") or "").lower():
        yield Mismatch(f"{what}, coded: Vary: Accept-Encoding", f"Vary: {answer.header('Vary')}")


@check("head-first", group="bytes")
def head_first(context: Context) -> Iterator[Finding]:
    """A HEAD before the first GET does not cache an empty page: GET gets the whole page, and HEAD its headers."""
    require_probes(context)
    path = new_path()
    before = context.get(path, method="HEAD")
    answers = [context.get(path) for _ in range(3)]
    after = context.get(path, method="HEAD")
    for answer in answers:
        if answer.status != 200 or not answer.content.rstrip().endswith(b"</html>"):
            yield Mismatch(
                f"GET {path} after HEAD: status 200 and the whole page",
                f"status {answer.status}, {len(answer.content)} bytes",
            )
        elif paragraphs(answer).get("method") != "GET":
            yield Mismatch(f"GET {path} after HEAD: the answer to GET", f"that to {paragraphs(answer).get('method')}")
    for when, head in (("first", before), ("last", after)):
        if head.status != 200 or head.content_type != answers[0].content_type:
            yield Mismatch(f"HEAD {path}, {when}: status 200, {answers[0].content_type}", f"status {head.status}")
        length = head.header("Content-Length")
        # The two renderings differ only in the name of their method.
        if length is not None and abs(int(length) - len(answers[0].body)) > len("HEAD"):
            yield Mismatch(f"HEAD {path}, {when}: Content-Length about {len(answers[0].body)}, or none", length)


@check("ranges", group="bytes")
def ranges(context: Context) -> Iterator[Finding]:
    """A range request gets those bytes or the whole page; the cached page is whole, even if a range came first."""
    require_probes(context)
    for path in (new_path(), new_path(), *context.site.lasting_paths):
        whole = context.get(path, context.bypass)
        # The first request is for a part; the second time the page may be cached.
        for _ in range(2):
            for asked, part in PARTS.items():
                yield from _wrong_part(path, asked, context.get(path, {"Range": f"bytes={asked}"}), whole, part)
            for answer in (context.get(path) for _ in range(3)):
                yield from _not_whole(f"GET {path} after ranges", answer, whole)


def _wrong_part(path: str, asked: str, answer: Answer, whole: Answer, part: slice) -> Iterator[Mismatch]:
    what, content = f"GET {path} with Range: bytes={asked}", whole.content
    if answer.status == 206:
        first, end, _ = part.indices(len(content))
        said = f"bytes {first}-{end - 1}/{len(content)}"
        if (got := answer.header("Content-Range")) != said:
            yield Mismatch(f"{what}: Content-Range: {said}", f"{got}")
        if first >= end or _without_ids(answer.content) != _without_ids(content[part]):
            yield Mismatch(f"{what}: bytes {first} to {end - 1}", f"{len(answer.content)} other bytes")
    elif answer.status == 416:
        if len(content[part]):
            yield Mismatch(f"{what}: status 206 or 200", "status 416")
    else:
        yield from _not_whole(what, answer, whole)


@check("conditions", group="bytes")
def conditions(context: Context) -> Iterator[Finding]:
    """If-None-Match and If-Modified-Since get a 304 where that is right, or the whole page; no 304 is cached."""
    require_probes(context)
    for path in (new_path(), new_path("odd/etag"), *context.site.lasting_paths):
        whole = context.get(path, context.bypass)
        tags = {tag for answer in (whole, context.get(path)) for tag in answer.all("ETag")}
        may = [("If-None-Match", value) for value in ("*", *tags)]
        may += [("If-Modified-Since", value) for value in whole.all("Last-Modified")]
        may_not = [("If-None-Match", '"another"'), ("If-Modified-Since", LONG_AGO)]
        # A page of its own, so that its very first request has a condition.
        cold = new_path()
        yield from _wrong_unless(context, cold, may[0], context.get(cold, context.bypass), may=True)
        for _ in range(2):
            for condition in (*may, *may_not):
                yield from _wrong_unless(context, path, condition, whole, may=condition in may)


def _wrong_unless(
    context: Context, path: str, condition: tuple[str, str], whole: Answer, *, may: bool
) -> Iterator[Mismatch]:
    """What is wrong with the answer to a condition, which may match, and with the page for others after it."""
    what = f"GET {path} with {': '.join(condition)}"
    answer = context.get(path, [condition])
    if answer.status != 304 or not may:
        yield from _not_whole(what, answer, whole)
    yield from _not_whole(f"{what}, then without it", context.get(path), whole)


def _not_whole(what: str, answer: Answer, whole: Answer) -> Iterator[Mismatch]:
    """What is wrong unless the answer is the whole page, of any rendering."""
    if answer.status != 200 or answer.header("Content-Range"):
        yield Mismatch(f"{what}: status 200, the whole page", f"status {answer.status}")
    elif _without_ids(answer.content) != _without_ids(whole.content):
        yield Mismatch(f"{what}: the page of {len(whole.content)} bytes", f"{len(answer.content)} other bytes")


def _without_ids(content: bytes) -> bytes:
    """A page, or a part of one, without its render ids."""
    return _ID.sub(b"*", content)


@check("headers-kept", group="bytes")
def headers_kept(context: Context) -> Iterator[Finding]:
    """A cached page has the headers of the rendered one and no others: type, charset, ETag, policies."""
    require_probes(context)
    for view in ("page", "coded", "form", *(f"odd/{kind}" for kind in SPECIAL_VIEWS)):
        path = new_path(view)
        # A page with a query string is not cached, and has the same headers.
        rendered = context.get(f"{path}?rendered=now")
        until_hit(context, path, tries=3)
        answer = context.get(path)
        names = {name.lower() for item in (answer, rendered) for name, _ in item.headers} - VOLATILE - ADDED
        yield from different_headers(
            f"GET {path}, a hit", answer, rendered, sorted(names), context.site.description.reads_environment
        )
        if answer.content_type.startswith("text/html;charset=iso") != (b"d\xe9j\xe0" in answer.content):
            yield Mismatch(f"GET {path}: bytes in the charset of {answer.content_type}", "those of another")


@check("large-page", group="bytes")
def large_page(context: Context) -> Iterator[Finding]:
    """A page above 1 MB arrives whole, cached or not; whether it is cached is reported."""
    require_probes(context)
    path = new_path("large")
    answers = [context.get(path) for _ in range(3)]
    for number, answer in enumerate(answers):
        if (
            answer.status != 200
            or len(answer.content) < LARGE_BYTES
            or not answer.content.rstrip().endswith(b"</html>")
            or paragraphs(answer).get("path") != path
        ):
            yield Mismatch(
                f"GET {path}, {number + 1}: status 200, {LARGE_BYTES:,} bytes and its end",
                f"status {answer.status}, {len(answer.content):,} bytes",
            )
    for number, answer in enumerate(answers):
        same = [other for other in answers[:number] if render_id(other) == render_id(answer)]
        if same and same[0].content != answer.content:
            yield Mismatch(f"GET {path}, a hit: the bytes as rendered", "other bytes")
    yield Figure("large_page_kept", int(len(set(map(render_id, answers))) < len(answers)))
