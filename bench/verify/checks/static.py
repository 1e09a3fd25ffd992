"""Static files as collected by collectstatic, from whichever server of the chain."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

from bench import PROGRAM
from bench.serve.project.commands import MANIFEST
from bench.verify import page_parser
from bench.verify.check import check, excused
from bench.verify.checks.page_content import revalidation
from bench.verify.context import OWN_STATIC, Context, judge_static
from bench.verify.expect import Expectation, body, header, header_words, no_server_error, status, varies_if_coded
from bench.verify.mismatch import Finding, NotTried
from bench.verify.site import Site

YEAR_S = 365 * 24 * 3600
# A file for ranges has at least so many bytes.
RANGED_BYTES = 2_000
# Ranges that request nothing, or for several parts at once.
ODD_RANGES = ("bytes=9-1", "bytes=x", "bytes=-", "bytes=0-" + "9" * 40, "items=0-1", "bytes=0-9,20-29")
RANGES = {"bytes=0-98": slice(0, 99), "bytes=1000-1999": slice(1000, 2000), "bytes=-99": slice(-99, None)}
# Content types accepted by browsers, by the beginning of the type; then the types of each suffix.
STYLE, SCRIPT, PICTURE = ("text/css",), ("text/javascript", "application/javascript"), ("image/",)
TYPES: dict[str, tuple[str, ...]] = {
    ".css": STYLE,
    ".js": SCRIPT,
    ".mjs": SCRIPT,
    ".json": ("application/json",),
    ".webmanifest": ("application/manifest+json",),
    ".svg": ("image/svg+xml",),
    ".png": ("image/png",),
    ".jpg": ("image/jpeg",),
    ".webp": ("image/webp",),
    ".avif": ("image/avif",),
    ".ico": PICTURE,
    ".woff2": ("font/woff2", "application/font-woff2"),
    ".wasm": ("application/wasm",),
    ".pdf": ("application/pdf",),
    ".txt": ("text/plain",),
}
# The hash in a collected file name, by which servers know files that never change.
HASHED = re.compile(r"\.[0-9a-f]{12}(\.[^./]+)$")
# Shorter ones gain nothing by compression.
COMPRESSED_BYTES = 100
NO_FILE = {"no file": f"pages name files that the project does not have: see `{PROGRAM} doctor`"}
OWN_RESPONSE = {OWN_STATIC: "the project's own code responds at such a path below the static files"}
OWN_FILES = {
    "no hash": f"a file that pages name has no hash in its name: see `{PROGRAM} doctor`",
    "own lifetime": "the project itself sends its files, and says for how long",
}


def source(site: Site, path: str) -> bytes | None:
    """The content of the project's file, original or collected; None if absent."""
    name = unquote(path.partition("?")[0].removeprefix(site.static_url))
    plain = HASHED.sub(r"\1", name)
    # collectstatic rewrites the addresses inside style sheets.
    names = [name, plain]
    if plain != name and plain.endswith(".css"):
        names = [name]
    for each in names:
        file = Path(site.static, each)
        if file.is_file() and file.resolve().is_relative_to(site.static.resolve()):
            return file.read_bytes()
    return None


def is_compressed(site: Site, path: str) -> bool:
    """True if collectstatic wrote a compressed copy of the file, required on a strict site."""
    name = unquote(path.partition("?")[0].removeprefix(site.static_url))
    return site.description.strict or Path(site.static, f"{name}.gz").is_file()


@check("references")
@excused(NO_FILE)
def references(context: Context) -> Iterator[Finding]:
    """Referenced style sheets, scripts, pictures and uploads exist with the right type."""
    kinds: dict[str, tuple[str, ...]] = {}
    site = context.site
    served = tuple(filter(None, (site.static_url, site.media_url)))
    for path in site.html_paths:
        page = page_parser.ParsedPage(context.first(path).text, path)
        for kind, urls in ((STYLE, page.styles), (SCRIPT, page.scripts), (PICTURE, page.pictures)):
            kinds |= {url.partition("#")[0]: kind for url in urls if url.startswith(served)}
        kinds |= {url: () for url in page.links if url.startswith(served)}
    unsent = []
    if site.media_url and not site.sends_uploads:
        unsent = [url for url in kinds if url.startswith(site.media_url)]
    if unsent:
        yield NotTried(f"{len(unsent)} uploads: no server of the stack sends files, see `{PROGRAM} doctor`")
    for url, types in kinds.items():
        if url in unsent:
            continue
        response = context.first(url)
        empty = not response.body and source(context.site, url) != b""
        if response.status != 200 or empty:
            got = f"status {response.status}, {len(response.body)} bytes"
            excuse = ""
            if response.status == 404 and _nobody_has(context.site, url):
                excuse = "no file"
            yield response.wrong("status 200 and a body", got, excuse=excuse)
        elif not response.content_type.startswith(types or ""):
            yield response.wrong(f"Content-Type: {types[0]}", header_words(response, "Content-Type"))


def _nobody_has(site: Site, url: str) -> bool:
    """True if a page names a static file or an upload that the project does not have."""
    if url.startswith(site.static_url):
        return site.static.is_dir() and site.has_database and source(site, url) is None
    file = site.media / unquote(url.partition("?")[0].removeprefix(site.media_url))
    return site.media.is_dir() and not file.is_file()


@check("static-files")
def static_files(context: Context) -> Iterator[Finding]:
    """A small and a large static file arrive whole, with their type and length."""
    for path in dict.fromkeys((context.site.url("static_small"), context.site.url("static_large"))):
        response = context.first(path)
        length = str(len(response.body))
        length_header = header("Content-Length", length.__eq__, f"Content-Length {length}")
        for right in (status(200), _typed(Path(path).suffix), _as_collected(context, path), length_header):
            yield from context.judge(response, right)


def _typed(suffix: str) -> Expectation:
    """Expect a type that browsers accept for this suffix; any type for an unknown suffix."""
    types = TYPES.get(suffix, ("",))
    return header("Content-Type", lambda value: value.startswith(types), types[0])


def _as_collected(context: Context, path: str) -> Expectation:
    """Expect the bytes of the project's file, if known."""
    content = source(context.site, path)
    if content is None:
        return Expectation("any file", lambda response: None)
    return body(content, f"the {len(content)} bytes of the project's file")


@check("static-types")
def static_types(context: Context) -> Iterator[Finding]:
    """A file of each kind has a type that browsers accept, also compressed: styles, scripts, pictures, fonts."""
    files = sorted(filter(Path.is_file, context.site.static.rglob("*")))
    kinds = {path.suffix: path for path in files if path.suffix in TYPES and path.name != MANIFEST}
    if not kinds:
        raise NotTried("the project has no static file of a known kind here")
    for suffix, path in kinds.items():
        url = context.site.static_url + quote(path.relative_to(context.site.static).as_posix())
        for coding in ("identity", "gzip", "br"):
            yield from context.expect(url, status(200), _typed(suffix), headers={"Accept-Encoding": coding})


@check("static-content")
def static_content(context: Context) -> Iterator[Finding]:
    """Referenced files are the project's, and style sheets compressed by collectstatic arrive compressed at clients of
    gzip."""
    for path in _referred(context):
        response = context.first(path)
        yield from context.judge(response, _as_collected(context, path))
        right = (body(response.content, "the same file"), varies_if_coded())
        coded = yield from context.expect(path, *right, headers={"Accept-Encoding": "gzip"})
        large = path.endswith(".css") and len(response.body) >= COMPRESSED_BYTES
        if large and is_compressed(context.site, path) and coded.coding != "gzip":
            yield coded.wrong("Content-Encoding: gzip", coded.coding)


@check("static-lifetime")
@excused(OWN_FILES)
def static_lifetime(context: Context) -> Iterator[Finding]:
    """Files with hashed names are cacheable for a year and immutable; others must be revalidated."""
    for path in _referred(context):
        response = context.first(path)
        if HASHED.search(path):
            yield from context.judge(
                response, header("Cache-Control", _lasts, "Cache-Control max-age of a year or more, public, immutable")
            )
        else:
            yield response.wrong("a hashed name in pages, such as style.0123456789ab.css", path, excuse="no hash")
    small = context.site.url("static_small")
    plain = context.first(small)
    if "immutable" in (plain.header("Cache-Control") or "") or _max_age(plain.header("Cache-Control")) >= YEAR_S:
        excuse = ""
        if not context.site.sends_uploads:
            excuse = "own lifetime"
        got = header_words(plain, "Cache-Control")
        yield plain.wrong("a short Cache-Control for a name without a hash", got, excuse=excuse)


def _lasts(control: str) -> bool:
    return _max_age(control) >= YEAR_S and "immutable" in control and "private" not in control


def _max_age(value: str | None) -> int:
    match = re.search(r"\bmax-age=(\d+)", value or "")
    if not match:
        return 0
    return int(match[1])


@check("static-conditional")
def static_conditional(context: Context) -> Iterator[Finding]:
    """A static file has a validator, and the validator gets a 304."""
    yield from revalidation(context, context.site.url("static_small"), required=True)


@check("static-manifest")
@excused(OWN_RESPONSE)
def static_manifest(context: Context) -> Iterator[Finding]:
    """The list of all static files by collectstatic (staticfiles.json) is not served."""
    for name in (MANIFEST, f"{MANIFEST}.gz"):
        yield from judge_static(context, f"{context.site.static_url}{name}", status(404, 403))


@check("static-range")
def static_range(context: Context) -> Iterator[Finding]:
    """A range of a static file gets this part (206), a range beyond the end a 416. Odd ranges make no server fail."""
    path = context.site.url("static_large")
    for odd, byte_range in itertools.product(ODD_RANGES, (path, f"{context.site.static_url}missing.css")):
        yield from context.expect(byte_range, no_server_error, headers={"Range": odd})
    content = context.first(path).body
    if len(content) < RANGED_BYTES:
        raise NotTried(f"its largest static file has {len(content)} bytes: too few for ranges")
    total = header(
        "Content-Range", lambda value: value.endswith(f"/{len(content)}"), f"Content-Range of {len(content)}"
    )
    for byte_range, part in RANGES.items():
        right = (status(206), body(content[part], f"its {len(content[part])} bytes"), total)
        yield from context.expect(path, *right, headers={"Range": byte_range})
    yield from context.expect(path, status(416), headers={"Range": f"bytes={len(content)}-"})


def _referred(context: Context) -> list[str]:
    """Static files referenced by the home page."""
    page = page_parser.ParsedPage(context.first(context.site.url("home")).text)
    urls = [*page.styles, *page.scripts, *page.pictures]
    return [url for url in urls if url.startswith(context.site.static_url)]
