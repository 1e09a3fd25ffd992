"""Static files, from whichever server of the chain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from bench.verify import page_parser
from bench.verify.check import check
from bench.verify.checks.pages import revalidation
from bench.verify.context import Context
from bench.verify.finding import Mismatch

SMALL, LARGE = "small.txt", "large.txt"
MANIFEST = "staticfiles.json"
SMALL_BYTES = 99
LARGE_BYTES = range(1_400_000, 1_700_000)
YEAR_S = 365 * 24 * 3600
_HASHED = re.compile(r"\.[0-9a-f]{8,}(\.[^./]+)$")


@check("static-files")
def static_files(context: Context) -> Iterator[Mismatch]:
    """small.txt (99 bytes) and large.txt (1.5 MB) arrive whole, as text, with their length."""
    for name, sizes in ((SMALL, [SMALL_BYTES]), (LARGE, LARGE_BYTES)):
        path, source = f"/static/{name}", _source(context, name)
        answer = context.first(path)
        if answer.status != 200:
            yield Mismatch(f"GET {path}: status 200", f"status {answer.status}")
            continue
        if not answer.content_type.startswith("text/plain"):
            yield Mismatch(f"GET {path}: Content-Type text/plain", answer.header("Content-Type") or "none")
        if len(answer.body) not in sizes or (source is not None and answer.body != source):
            right = len(source) if source is not None else sizes[0]
            yield Mismatch(f"GET {path}: the {right} bytes of static/{name}", f"{len(answer.body)} bytes")
        if answer.header("Content-Length") != str(len(answer.body)):
            yield Mismatch(f"GET {path}: Content-Length {len(answer.body)}", answer.header("Content-Length") or "none")


@check("static-content")
def static_content(context: Context) -> Iterator[Mismatch]:
    """The files that pages refer to are the project's, and style sheets are compressed for clients of gzip."""
    for path in _referred(context):
        answer = context.first(path)
        source = _source(context, _HASHED.sub(r"\1", path.removeprefix("/static/")))
        # collectstatic rewrites the addresses inside style sheets.
        if source is not None and not path.endswith(".css") and answer.body != source:
            yield Mismatch(f"GET {path}: the {len(source)} bytes of the project's file", f"{len(answer.body)} bytes")
        coded = context.get(path, {"Accept-Encoding": "gzip"})
        if coded.status != 200 or coded.content != answer.content:
            yield Mismatch(f"GET {path} with gzip: the same file", f"status {coded.status}, other content")
        if path.endswith(".css") and coded.header("Content-Encoding") != "gzip":
            yield Mismatch(f"GET {path} with gzip: Content-Encoding: gzip", coded.header("Content-Encoding") or "none")
        if coded.header("Content-Encoding") and "accept-encoding" not in (coded.header("Vary") or "").lower():
            yield Mismatch(f"GET {path} with gzip: Vary: Accept-Encoding", f"Vary: {coded.header('Vary')}")


@check("static-lifetime")
def static_lifetime(context: Context) -> Iterator[Mismatch]:
    """Files with hashed names are cacheable for a year and immutable; others must be revalidated."""
    for path in _referred(context):
        if not _HASHED.search(path):
            yield Mismatch("a hashed name in pages, such as style.0123456789ab.css", path)
            continue
        given = context.first(path).header("Cache-Control") or "none"
        if (_max_age(given) or 0) < YEAR_S or "immutable" not in given or "private" in given:
            yield Mismatch(f"GET {path}: Cache-Control max-age of a year or more, public, immutable", given)
    given = context.first(f"/static/{SMALL}").header("Cache-Control") or ""
    if "immutable" in given or (_max_age(given) or 0) >= YEAR_S:
        yield Mismatch(f"GET /static/{SMALL}, a name without a hash: a short Cache-Control", given)


@check("static-conditional")
def static_conditional(context: Context) -> Iterator[Mismatch]:
    """A static file has a validator and answers 304 to it."""
    yield from revalidation(context, f"/static/{SMALL}", required=True)


@check("static-manifest")
def static_manifest(context: Context) -> Iterator[Mismatch]:
    """The list of all static files that collectstatic writes (staticfiles.json) is not served."""
    for name in (MANIFEST, f"{MANIFEST}.gz"):
        if (status := context.get(f"/static/{name}").status) not in (403, 404):
            yield Mismatch(f"GET /static/{name}: status 404", f"status {status}")


@check("static-range")
def static_range(context: Context) -> Iterator[Mismatch]:
    """A range of a static file gets that part (206), and one beyond its end a 416."""
    path = f"/static/{LARGE}"
    whole = context.first(path).body
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
    return [url for url in [*found.styles, *found.scripts, *found.images] if url.startswith("/static/")]


def _source(context: Context, name: str) -> bytes | None:
    """The content of the project's file of that name, or None when there is no such file."""
    path = Path(context.site.static, name)
    return path.read_bytes() if path.is_file() and context.site.static in path.parents else None


def _max_age(value: str) -> int | None:
    found = re.search(r"\bmax-age=(\d+)", value)
    return int(found[1]) if found else None
