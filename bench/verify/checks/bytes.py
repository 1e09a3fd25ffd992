"""A cached response equals its rendering: bytes, content coding, and headers."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import partial
from itertools import permutations

from bench.serve.machine.http import BadResponse
from bench.verify import hits
from bench.verify.check import check as any_check
from bench.verify.check import excused
from bench.verify.checks.page_content import CLOCK_S, different_headers
from bench.verify.context import Context
from bench.verify.expect import Expectation, same_header, status, varies_if_coded
from bench.verify.mismatch import Figure, Finding
from bench.verify.site import Site
from bench.verify.wire import PageResponse

CODINGS = ("identity", "gzip", "br")
LARGE_BYTES = 1_200_000
# Range -> the part of a page. Each part has most of the probe's render id or nothing of it; the last range is beyond
# the end.
PARTS = {"0-99": slice(0, 100), "200-": slice(200, None), "-100": slice(-100, None), "9999999-": slice(9_999_999, None)}
LONG_AGO = "Sat, 01 Jan 2000 00:00:00 GMT"
RECENT = "Sat, 01 Nov 2025 10:00:00 GMT"
_ID = re.compile(rb"[0-9a-f]{24,}")

check = partial(any_check, group="bytes")
CHANGED = {"changed": "the project's own middleware changes the bytes of pages that a view has compressed"}


@check("codings", hits.require_probes)
@excused(CHANGED)
def codings(context: Context) -> Iterator[Finding]:
    """Clients of identity, gzip and br, in every order, get an acceptable body that matches its headers."""
    for view in ("page", "coded"):
        zipped = {**context.bypass, "Accept-Encoding": "gzip"}
        # Without the layer, too, a compressed page may be none any more.
        bypassed = context.get(hits.new_path(view), zipped)
        if got := _accepted("gzip").wrong(bypassed):
            yield bypassed.wrong(_accepted("gzip").words, got, excuse="changed")
            continue
        for order in permutations(CODINGS):
            path = hits.new_path(view)
            for coding in (*order, *order):
                right = (_accepted(coding), hits.has_paragraph("path", path), hits.complete_page(), varies_if_coded())
                yield from context.expect(path, *right, headers={"Accept-Encoding": coding})


def _accepted(coding: str) -> Expectation:
    """Expect the requested coding, and a body in this coding."""

    def wrong(response: PageResponse) -> str | None:
        try:
            right = response.coding in ("identity", coding) and response.content
        except BadResponse as error:
            return str(error)
        if right:
            return None
        return f"Content-Encoding {response.coding}"

    return Expectation(f"a body in {coding}, or not coded", wrong)


@check("head-first", hits.require_probes)
def head_first(context: Context) -> Iterator[Finding]:
    """A HEAD before the first GET does not cache an empty page: GET gets the whole page, and HEAD its headers."""
    path = hits.new_path()
    heads = [context.get(path, method="HEAD")]
    responses = hits.repeat(context, path)
    heads.append(context.get(path, method="HEAD"))
    for response in responses:
        yield from context.judge(response, hits.complete_page(), hits.has_paragraph("method", "GET"), when="after HEAD")
    for head in heads:
        length = len(responses[0].body)
        yield from context.judge(head, status(200), same_header(responses[0], "Content-Type"))
        # The two renderings differ only in the name of their method.
        if (given := head.header("Content-Length")) and abs(int(given) - length) > len("HEAD"):
            yield head.wrong(f"Content-Length about {length}, or none", given)


@check("ranges", hits.require_probes)
def ranges(context: Context) -> Iterator[Finding]:
    """A range request gets those bytes or the whole page; the cached page is whole, even if a range came first."""
    for path in (hits.new_path(), hits.new_path(), *_lasting(context.site)):
        page = context.get(path, context.bypass)
        # The first request is for a part; the second time the page may be cached.
        for _ in range(2):
            for byte_range, part in PARTS.items():
                yield from context.judge(context.get(path, {"Range": f"bytes={byte_range}"}), _part(page, part))
            for response in hits.repeat(context, path):
                yield from context.judge(response, _same(page), when="after ranges")


def _lasting(site: Site) -> list[str]:
    """A page with the same bytes in each rendering, because no check writes to it; empty in some projects."""
    if "lasting" in site.urls:
        return [site.urls["lasting"]]
    alike = [path for path in site.main_paths if site.pages[path].lasts]
    if site.has_rows or site.description.write:
        return []
    return alike[:1]


def _part(page: PageResponse, part: slice) -> Expectation:
    """Expect the requested bytes, the whole page, or a refusal if the range is beyond the end."""
    content, whole_page = page.content, _same(page)
    expected = content[part]
    first, end, _ = part.indices(len(content))
    content_range = f"bytes {first}-{end - 1}/{len(content)}"

    def wrong(response: PageResponse) -> str | None:
        if response.status == 206:
            same = _without_ids(response.content) == _without_ids(expected)
            right = same and response.header("Content-Range") == content_range
            if right:
                return None
            return f"Content-Range {response.header('Content-Range')}, {len(response.content)} bytes"
        if response.status == 416 and not expected:
            return None
        return whole_page.wrong(response)

    return Expectation(f"{content_range}, or the whole page", wrong)


@check("conditions", hits.require_probes)
def conditions(context: Context) -> Iterator[Finding]:
    """If-None-Match and If-Modified-Since get a right 304 or the whole page; no 304 is cached."""
    for path in (
        hits.new_path(),
        hits.with_headers(ETag='"an-etag"', Last_Modified=RECENT),
        *_lasting(context.site),
    ):
        page = context.get(path, context.bypass)
        tags = {*page.all("ETag"), *context.get(path).all("ETag")}
        may = [("If-None-Match", value) for value in ("*", *tags)]
        may += [("If-Modified-Since", value) for value in page.all("Last-Modified")]
        may_not = [("If-None-Match", '"another"'), ("If-Modified-Since", LONG_AGO)]
        # A separate page, so that its very first request has a condition.
        cold = hits.new_path()
        yield from _on_condition(context, cold, may[0], context.get(cold, context.bypass), may=True)
        for condition in (*may, *may_not, *may, *may_not):
            yield from _on_condition(context, path, condition, page, may=condition in may)


def _on_condition(
    context: Context, path: str, condition: tuple[str, str], page: PageResponse, *, may: bool
) -> Iterator[Finding]:
    """Expect a right response to a condition, which may match, and the whole page for others afterwards."""
    response = context.get(path, [condition])
    if response.status != 304 or not may:
        yield from context.judge(response, _same(page))
    yield from context.expect(path, _same(page), when=f"after {': '.join(condition)}")


def _same(page: PageResponse) -> Expectation:
    """The whole page, of any rendering."""

    def wrong(response: PageResponse) -> str | None:
        if response.status != 200 or response.header("Content-Range"):
            return f"status {response.status}"
        same = _without_ids(response.content) == _without_ids(page.content)
        if same:
            return None
        return f"{len(response.content)} other bytes"

    return Expectation(f"status 200, the page of {len(page.content)} bytes", wrong)


def _without_ids(content: bytes) -> bytes:
    """A page, or part of a page, without its render ids."""
    return _ID.sub(b"*", content)


@check("headers-kept", hits.require_probes)
def headers_kept(context: Context) -> Iterator[Finding]:
    """A cached page has the headers of the rendered one and no others: type, charset, ETag, policies."""
    # Pages with extra headers: a cached copy has these headers too, or is not stored.
    special = (
        hits.with_headers(Content_Security_Policy="default-src 'none'"),
        hits.with_headers(Content_Language="fr", X_Robots_Tag="noindex", Link="</>; rel=canonical"),
        hits.with_headers(ETag='"an-etag"', Last_Modified=RECENT),
        hits.with_headers(Cache_Control="public, max-age=600"),
        hits.path_with_response(does=["latin"]),
        hits.path_with_response(does=["plain"]),
    )
    paths = (*map(hits.new_path, ("page", "coded", "form")), *special)
    for path in paths:
        hits.until_hit(context, path, tries=3)
    # Expires and Age count whole seconds: a hit within the second of its rendering has the same ones.
    time.sleep(CLOCK_S)
    for path in paths:
        response = context.get(path)
        yield from different_headers(context, path, response)
        if response.content_type.startswith("text/html;charset=iso") != (b"d\xe9j\xe0" in response.content):
            yield response.wrong(f"bytes in the charset of {response.content_type}", "bytes in another charset")


@check("large-page", hits.require_probes)
def large_page(context: Context) -> Iterator[Finding]:
    """A page above 1 MB arrives whole, cached or not; whether the page is cached is reported."""
    path = hits.new_path("large")
    responses = hits.repeat(context, path)
    for number, response in enumerate(responses):
        yield from context.judge(response, hits.complete_page(LARGE_BYTES), hits.has_paragraph("path", path))
        same = [other for other in responses[:number] if hits.render_id(other) == hits.render_id(response)]
        if same and same[0].content != response.content:
            yield response.wrong("a hit with the bytes as rendered", "other bytes")
    yield Figure("large_page_kept", int(len(set(map(hits.render_id, responses))) < len(responses)))
