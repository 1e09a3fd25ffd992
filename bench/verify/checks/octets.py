"""What was kept is what was rendered: the bytes, their coding, and what is said of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import permutations

from bench.verify.checks.pages import VOLATILE
from bench.verify.outcome import Figure, Finding
from bench.verify.probes import PAST_THE_LAYER, fresh, kept, must_have_probes, rendering, shown
from bench.verify.suite import Context, Mismatch, check
from bench.verify.wire import Answer, BadAnswer

CODINGS = ("identity", "gzip", "br")
LARGE_BYTES = 1_200_000
# Each holds the id of a probe's rendering for the most part or not at all; the last one is of no page.
PARTS = {"0-99": slice(0, 100), "200-": slice(200, None), "-100": slice(-100, None), "9999999-": slice(9_999_999, None)}
LONG_AGO = "Sat, 01 Jan 2000 00:00:00 GMT"
_ID = re.compile(rb"[0-9a-f]{24,}")
# Pages that say something of themselves that other pages do not.
SAYING = ("own-policy", "own-headers", "etag", "lasting", "latin", "plain-text")
# What a layer may add of its own: whoever keeps pages may say where an answer came from and how old it is.
ADDED = frozenset(["x-cache", "x-cache-hits", "cache-status", "server"])


@check("codings", group="bytes")
def codings(context: Context) -> Iterator[Finding]:
    """Clients of identity, gzip and br, in every order, get what the headers say, and nothing they cannot read."""
    must_have_probes(context)
    for view in ("page", "coded"):
        for order in permutations(CODINGS):
            path = fresh(view)
            for coding in (*order, *order):
                yield from _wrong_coding(path, coding, context.get(path, {"Accept-Encoding": coding}))


def _wrong_coding(path: str, asked: str, answer: Answer) -> Iterator[Mismatch]:
    what = f"GET {path} with Accept-Encoding: {asked}"
    coding = (answer.header("Content-Encoding") or "identity").strip().lower()
    if coding not in ("identity", asked):
        yield Mismatch(f"{what}: {asked}, or not coded", f"Content-Encoding: {coding}")
        return
    try:
        told = shown(answer).get("path")
    except BadAnswer as error:
        yield Mismatch(f"{what}: a body that is {coding}", str(error))
        return
    if told != path or not answer.content.rstrip().endswith(b"</html>"):
        yield Mismatch(f"{what}: the whole page", f"{len(answer.content)} bytes of the page of {told}")
    if coding != "identity" and "accept-encoding" not in (answer.header("Vary") or "").lower():
        yield Mismatch(f"{what}, coded: Vary: Accept-Encoding", f"Vary: {answer.header('Vary')}")


@check("head-first", group="bytes")
def head_first(context: Context) -> Iterator[Finding]:
    """HEAD before the first GET keeps no empty page: GET after it is whole, and HEAD after that says the same."""
    must_have_probes(context)
    path = fresh()
    before = context.get(path, method="HEAD")
    answers = [context.get(path) for _ in range(3)]
    after = context.get(path, method="HEAD")
    for answer in answers:
        if answer.status != 200 or not answer.content.rstrip().endswith(b"</html>"):
            yield Mismatch(
                f"GET {path} after HEAD: status 200 and the whole page",
                f"status {answer.status}, {len(answer.content)} bytes",
            )
        elif shown(answer).get("method") != "GET":
            yield Mismatch(f"GET {path} after HEAD: the answer to GET", f"that to {shown(answer).get('method')}")
    for when, head in (("first", before), ("last", after)):
        if head.status != 200 or head.content_type != answers[0].content_type:
            yield Mismatch(f"HEAD {path}, {when}: status 200, {answers[0].content_type}", f"status {head.status}")
        length = head.header("Content-Length")
        # The two renderings differ in nothing but the name of their method.
        if length is not None and abs(int(length) - len(answers[0].body)) > len("HEAD"):
            yield Mismatch(f"HEAD {path}, {when}: Content-Length about {len(answers[0].body)}, or none", length)


@check("ranges", group="bytes")
def ranges(context: Context) -> Iterator[Finding]:
    """A range of a page is those very bytes of it, or the page is whole; what is kept is whole, whoever asked first."""
    must_have_probes(context)
    for path in (fresh(), fresh(), _lasting(context)):
        whole = context.get(path, PAST_THE_LAYER)
        # The first who asks the layer wants a part; then it is kept, and parts are asked for once more.
        for _ in range(2):
            for asked, part in PARTS.items():
                yield from _wrong_part(path, asked, context.get(path, {"Range": f"bytes={asked}"}), whole, part)
            for answer in (context.get(path) for _ in range(3)):
                yield from _not_whole(f"GET {path} after ranges", answer, whole)


def _lasting(context: Context) -> str:
    """A page of the site that no check writes to; others may be kept open by a server for a second after a write."""
    return context.site.url("author", "authors")


def _wrong_part(path: str, asked: str, answer: Answer, whole: Answer, part: slice) -> Iterator[Mismatch]:
    what, content = f"GET {path} with Range: bytes={asked}", whole.content
    if answer.status == 206:
        first, end, _ = part.indices(len(content))
        said = f"bytes {first}-{end - 1}/{len(content)}"
        if (got := answer.header("Content-Range")) != said:
            yield Mismatch(f"{what}: Content-Range: {said}", f"{got}")
        if first >= end or _but_for_ids(answer.content) != _but_for_ids(content[part]):
            yield Mismatch(f"{what}: bytes {first} to {end - 1}", f"{len(answer.content)} other bytes")
    elif answer.status == 416:
        if len(content[part]):
            yield Mismatch(f"{what}: status 206 or 200", "status 416")
    else:
        yield from _not_whole(what, answer, whole)


@check("conditions", group="bytes")
def conditions(context: Context) -> Iterator[Finding]:
    """If-None-Match and If-Modified-Since get a 304 where they may, or the whole page; no such answer is kept."""
    must_have_probes(context)
    for path in (fresh(), fresh("odd/etag"), _lasting(context)):
        whole = context.get(path, PAST_THE_LAYER)
        tags = {tag for answer in (whole, context.get(path)) for tag in answer.all("ETag")}
        may = [("If-None-Match", value) for value in ("*", *tags)]
        may += [("If-Modified-Since", value) for value in whole.all("Last-Modified")]
        may_not = [("If-None-Match", '"another"'), ("If-Modified-Since", LONG_AGO)]
        # A page of its own, so that the first of all to ask has a condition.
        cold = fresh()
        yield from _wrong_unless(context, cold, may[0], context.get(cold, PAST_THE_LAYER), may=True)
        for _ in range(2):
            for condition in (*may, *may_not):
                yield from _wrong_unless(context, path, condition, whole, may=condition in may)


def _wrong_unless(
    context: Context, path: str, condition: tuple[str, str], whole: Answer, *, may: bool
) -> Iterator[Mismatch]:
    """What is wrong with the answer to a condition, which may be met, and with the page for others after it."""
    what = f"GET {path} with {': '.join(condition)}"
    answer = context.get(path, [condition])
    if answer.status != 304 or not may:
        yield from _not_whole(what, answer, whole)
    yield from _not_whole(f"{what}, then without it", context.get(path), whole)


def _not_whole(what: str, answer: Answer, whole: Answer) -> Iterator[Mismatch]:
    """What is wrong unless the answer is the whole page, in whichever rendering."""
    if answer.status != 200 or answer.header("Content-Range"):
        yield Mismatch(f"{what}: status 200, the whole page", f"status {answer.status}")
    elif _but_for_ids(answer.content) != _but_for_ids(whole.content):
        yield Mismatch(f"{what}: the page of {len(whole.content)} bytes", f"{len(answer.content)} other bytes")


def _but_for_ids(content: bytes) -> bytes:
    """A page, or a part of one, without what each rendering says of itself."""
    return _ID.sub(b"*", content)


@check("headers-kept", group="bytes")
def headers_kept(context: Context) -> Iterator[Finding]:
    """A page that was kept has the headers of the rendered one and no others: type, charset, ETag, policies."""
    must_have_probes(context)
    for view in ("page", "coded", "form", *(f"odd/{kind}" for kind in SAYING)):
        path = fresh(view)
        # A page with a query string is not kept, and says the same of itself.
        rendered = context.get(f"{path}?rendered=anew")
        kept(context, path, tries=3)
        answer = context.get(path)
        yield from _other_headers(path, answer, rendered)
        if answer.content_type.startswith("text/html;charset=iso") != (b"d\xe9j\xe0" in answer.content):
            yield Mismatch(f"GET {path}: bytes in the charset of {answer.content_type}", "those of another")


def _other_headers(path: str, answer: Answer, rendered: Answer) -> Iterator[Mismatch]:
    names = {name.lower() for item in (answer, rendered) for name, _ in item.headers} - VOLATILE - ADDED
    for name in sorted(names):
        if _plain(answer.header(name)) != _plain(rendered.header(name)):
            yield Mismatch(f"GET {path}, kept: {name}: {rendered.header(name)}", f"{answer.header(name)}")


def _plain(value: str | None) -> str | None:
    """A header's value without what means nothing: letter case and spaces."""
    return None if value is None else "".join(value.lower().split())


@check("large-page", group="bytes")
def large_page(context: Context) -> Iterator[Finding]:
    """A page above 1 MB is whole, kept or not; whether it is kept is reported."""
    must_have_probes(context)
    path = fresh("large")
    answers = [context.get(path) for _ in range(3)]
    for number, answer in enumerate(answers):
        if (
            answer.status != 200
            or len(answer.content) < LARGE_BYTES
            or not answer.content.rstrip().endswith(b"</html>")
            or shown(answer).get("path") != path
        ):
            yield Mismatch(
                f"GET {path}, {number + 1}: status 200, {LARGE_BYTES:,} bytes and its end",
                f"status {answer.status}, {len(answer.content):,} bytes",
            )
    for number, answer in enumerate(answers):
        same = [other for other in answers[:number] if rendering(other) == rendering(answer)]
        if same and same[0].content != answer.content:
            yield Mismatch(f"GET {path}, kept: the bytes as rendered", "other bytes")
    yield Figure("large_page_kept", int(len(set(map(rendering, answers))) < len(answers)))
