"""Static files, from whichever server of the chain."""

from __future__ import annotations

import itertools
import mimetypes
import re
from collections.abc import Iterator

from bench.verify import page_parser
from bench.verify.check import check
from bench.verify.checks.pages import revalidation
from bench.verify.collected import HASHED, is_compressed, source
from bench.verify.context import Context
from bench.verify.finding import Finding, Mismatch, NotTried

MANIFEST = "staticfiles.json"
YEAR_S = 365 * 24 * 3600
# A file for ranges has at least so many bytes.
RANGED_BYTES = 2_000
# Ranges that ask for nothing, or for several parts at once.
ODD_RANGES = ("bytes=9-1", "bytes=x", "bytes=-", "bytes=0-" + "9" * 40, "items=0-1", "bytes=0-9,20-29")
# Shorter ones gain nothing by compression.
COMPRESSED_BYTES = 100


@check("static-files")
def static_files(context: Context) -> Iterator[Mismatch]:
    """A small and a large static file arrive whole, with their type and length."""
    for path in dict.fromkeys((context.site.url("static_small"), context.site.url("static_large"))):
        answer, collected = context.first(path), source(context.site, path)
        if answer.status != 200:
            yield Mismatch(f"GET {path}: status 200", f"status {answer.status}")
            continue
        kind = (mimetypes.guess_type(path)[0] or "").partition("/")
        if kind[0] == "text" and not answer.content_type.startswith(f"text/{kind[2]}"):
            yield Mismatch(f"GET {path}: Content-Type text/{kind[2]}", answer.header("Content-Type") or "none")
        if collected is not None and answer.body != collected:
            yield Mismatch(f"GET {path}: the {len(collected)} bytes of the project's file", f"{len(answer.body)} bytes")
        if answer.header("Content-Length") != str(len(answer.body)):
            yield Mismatch(f"GET {path}: Content-Length {len(answer.body)}", answer.header("Content-Length") or "none")


@check("static-content")
def static_content(context: Context) -> Iterator[Mismatch]:
    """The files that pages refer to are the project's, and style sheets that collectstatic
    compressed arrive so at clients of gzip."""
    for path in _referred(context):
        answer = context.first(path)
        collected = source(context.site, path)
        if collected is not None and answer.body != collected:
            yield Mismatch(f"GET {path}: the {len(collected)} bytes of the project's file", f"{len(answer.body)} bytes")
        coded = context.get(path, {"Accept-Encoding": "gzip"})
        if coded.status != 200 or coded.content != answer.content:
            yield Mismatch(f"GET {path} with gzip: the same file", f"status {coded.status}, other content")
        compressible = (
            path.endswith(".css") and len(answer.body) >= COMPRESSED_BYTES and is_compressed(context.site, path)
        )
        if compressible and coded.header("Content-Encoding") != "gzip":
            yield Mismatch(f"GET {path} with gzip: Content-Encoding: gzip", coded.header("Content-Encoding") or "none")
        if coded.header("Content-Encoding") and "accept-encoding" not in (coded.header("Vary") or "").lower():
            yield Mismatch(f"GET {path} with gzip: Vary: Accept-Encoding", f"Vary: {coded.header('Vary')}")


@check("static-lifetime")
def static_lifetime(context: Context) -> Iterator[Finding]:
    """Files with hashed names are cacheable for a year and immutable; others must be revalidated."""
    for path in _referred(context):
        if not HASHED.search(path):
            if context.strict:
                yield Mismatch("a hashed name in pages, such as style.0123456789ab.css", path)
            else:
                yield NotTried(f"{path} has no hash in its name: see `python -m bench doctor`")
            continue
        given = context.first(path).header("Cache-Control") or "none"
        if (_max_age(given) or 0) < YEAR_S or "immutable" not in given or "private" in given:
            yield Mismatch(f"GET {path}: Cache-Control max-age of a year or more, public, immutable", given)
    plain = context.site.url("static_small")
    given = context.first(plain).header("Cache-Control") or ""
    if "immutable" in given or (_max_age(given) or 0) >= YEAR_S:
        yield Mismatch(f"GET {plain}, a name without a hash: a short Cache-Control", given)


@check("static-conditional")
def static_conditional(context: Context) -> Iterator[Mismatch]:
    """A static file has a validator and answers 304 to it."""
    yield from revalidation(context, context.site.url("static_small"), required=True)


@check("static-manifest")
def static_manifest(context: Context) -> Iterator[Mismatch]:
    """The list of all static files that collectstatic writes (staticfiles.json) is not served."""
    for name in (MANIFEST, f"{MANIFEST}.gz"):
        path = f"{context.site.static_url}{name}"
        if (status := context.get(path).status) not in (403, 404):
            yield Mismatch(f"GET {path}: status 404", f"status {status}")


@check("static-range")
def static_range(context: Context) -> Iterator[Mismatch]:
    """A range of a static file gets that part (206), and one beyond its end a 416. Odd ranges make no server fail."""
    path = context.site.url("static_large")
    for odd, target in itertools.product(ODD_RANGES, (path, f"{context.site.static_url}missing.css")):
        if (status := context.get(target, {"Range": odd}).status) >= 500:
            yield Mismatch(f"GET {target} with Range: {odd}: a status below 500", f"status {status}")
    whole = context.first(path).body
    if len(whole) < RANGED_BYTES:
        raise NotTried(f"its largest static file has {len(whole)} bytes: too few for ranges")
    for asked, part in (("bytes=0-98", whole[:99]), ("bytes=1000-1999", whole[1000:2000]), ("bytes=-99", whole[-99:])):
        answer = context.get(path, {"Range": asked})
        if answer.status != 206 or answer.body != part:
            yield Mismatch(
                f"GET {path} with Range: {asked}: status 206 and {len(part)} bytes",
                f"status {answer.status} and {len(answer.body)} bytes",
            )
        elif not (answer.header("Content-Range") or "").endswith(f"/{len(whole)}"):
            yield Mismatch(f"Content-Range ending in /{len(whole)}", answer.header("Content-Range") or "none")
    beyond = context.get(path, {"Range": f"bytes={len(whole)}-"})
    if beyond.status != 416:
        yield Mismatch(f"GET {path} with Range beyond its end: status 416", f"status {beyond.status}")


def _referred(context: Context) -> list[str]:
    """The static files that the home page refers to."""
    found = page_parser.parse(context.first(context.site.url("home")).text)
    urls = [*found.styles, *found.scripts, *found.images]
    return [url for url in urls if url.startswith(context.site.static_url)]


def _max_age(value: str) -> int | None:
    found = re.search(r"\bmax-age=(\d+)", value)
    return int(found[1]) if found else None
