"""Malicious, malformed and odd addresses: none leads to another file, breaks the site or shares a cache entry."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from urllib.parse import quote

from bench.serve.machine.http import BadResponse, Headers
from bench.verify.check import check
from bench.verify.context import Context, as_in_project
from bench.verify.expect import REFUSED, lacks_bytes, no_header, no_server_error
from bench.verify.hits import require_probes
from bench.verify.mismatch import Finding, Mismatch
from bench.verify.site import LIST_PAGE
from bench.verify.wire import PageResponse

NAMES = "names"

# Each path leads to a file of the project or of the machine if a server joins it to a directory unchanged. `located`
# has the meaning of the words in braces.
FILES = (
    "{static}../manage.py",
    "{static}../{settings}",
    "{bare}../manage.py",
    "{bare}../{settings}",
    "{static}%2e%2e/manage.py",
    "{static}..%2fmanage.py",
    "{static}%2e%2e%2fmanage.py",
    "{static}.%2e/manage.py",
    "{static}css/../../manage.py",
    "{static}css/..%2f..%2fmanage.py",
    "{static}..\\manage.py",
    "{static}..%5cmanage.py",
    "{static}%252e%252e/manage.py",
    "{static}/etc/passwd",
    "{static}%2fetc%2fpasswd",
    "{static}../../../../../../../../../../etc/passwd",
    "{static}%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "{static}..%2f..%2f..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
    "/../../../../../../../../../../etc/passwd",
    "/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "{section}..%2f..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
    "/manage.py",
    "/{settings}",
    "/.git/config",
)
# Each path leads to a static file by way of folders outside of the static root: no server may serve it.
BESIDE = (
    "{bare}../{root}/{file}",
    "{bare}..//{root}/{file}",
    "{bare}..%2f{root}%2f{file}",
    "{bare}.%2e/{root}/{file}",
    "{bare}%2e%2e/{root}/{file}",
    "{bare}%2e%2e%2f{root}%2f{file}",
    "{bare}..%5c{root}%5c{file}",
    "{bare}..;/{root}/{file}",
    "{static}../../{above}/{root}/{file}",
    "{static}..%2f..%2f{above}%2f{root}%2f{file}",
    "{static}%2e%2e%2f%2e%2e%2f{above}%2f{root}%2f{file}",
    "{static}%2e%2e/%2e%2e/{above}/{root}/{file}",
    "{static}..%5c..%5c{above}%5c{root}%5c{file}",
    "{static}..;/..;/{above}/{root}/{file}",
    "{static}%252e%252e/%252e%252e/{above}/{root}/{file}",
)
# Text of the files named above.
SECRETS = (b"execute_from_command_line", b"INSTALLED_APPS", b"root:x:0:0", b"[core]")

ODD_PATHS = (
    *(b"/%00", b"{section}%00/", b"{small}%00.css", b"/%ff%fe/", b"/caf%C3%A9/", "/caf\u00e9/".encode()),
    *("/\u4f60\u597d/".encode(), b"/%E2%82/", b"{static}%ff.css", b"{static}%E4%BD%A0.css"),
    *(b"{section}%20/", b"{section}1%20/", b"{section}%EF%BC%91/", b"{section}99999999999999999999999/"),
    *(b"{section}-1/", b"{section}1%0d%0aX-Injected:%20yes/", b"{static}%0d%0aX-Injected:%20yes"),
    *(
        b"/" + b"a" * 255 + b"/",
        b"{static}" + b"a" * 255,
        b"{static}" + b"a" * 300 + b".css",
        b"/" + b"a" * 3000 + b"/",
    ),
)
# In place of the number that an address of a list ends with.
HUGE = b"99999999999999999999999"
_NUMBER = re.compile(rb"\d+(?=/$)")
# Not percent-encoding at all; a server that drops the malformed part returns another page.
BROKEN_ESCAPES = (b"/%", b"/%zz/", b"{section}%", b"{static}%", b"{static}%zz.css")
# A path without pages in a project whose pages are unknown, so that no view gets an odd number.
SECTION = "/no/such/"

no_file = lacks_bytes(SECRETS, "no such file")
# Names in place of a page's name; `x` and `y` are plain cacheable pages.
ODD = (
    *("x", "y", "X", "x-", "x.", ".x", "x.html", "x/index.html", "index.html"),
    # Slashes and dot segments, also encoded.
    *("x/y", "x//y", "x/", "/x", "./x", "x/.", "y/../x", "y/..", "%2e/x", "y/%2e%2e/x", "y/.%2e/x", "y/%2e%2e"),
    *("y%2f..%2fx", "..%2fx", "y%5c..%5cx", "x%2fy", "x%2Fy", "x%5cy"),
    # Spaces, signs of a query or a fragment, and quotes.
    *("x%20y", "x%20", "%20x", "x+y", "x%2by", "x%2520y", "x%252fy", "x%3fa=1", "x%23a", "x%26a=1", "x;a=1", "x%3ba=1"),
    *("x:y", "x,y", "x|y", "x'y", "x%22y", "x%3cy%3e"),
    # Characters that end a string, a line or a header.
    *("x%00", "x%00y", "%00x", "x%0a", "x%0d%0a", "x%0d%0aX-Injected:%20yes", "x%09y", "x%7f", "%78"),
    # Unicode in several spellings, and bytes that are not UTF-8.
    *("%C3%A9", "%c3%a9", "e%CC%81", "%E9", "%ff%fe", "%E4%BD%A0%E5%A5%BD", "%F0%9F%98%80", "%E2%80%AE"),
)
# Bytes in the request line that a client must encode and some do not.
RAW = (
    *(b"x", b"x y", b"x ", b" x", b"x\ty", b"\xe9", b"\xff\xfe", b"x\x7f", b"x\x01"),
    *(text.encode() for text in ("\u00e9", "x\u00e9", "\u4f60\u597d")),
)
RAW_ESCAPES = (
    b"/__probe__/page/ /../../../../../../../etc/passwd",
    b"/ /../../../../../../../etc/passwd",
    "/__probe__/page/\u00e9/../../../../../../../etc/passwd".encode(),
    b"/__probe__/page/\xc0\xae\xc0\xae/\xc0\xae\xc0\xae/\xc0\xae\xc0\xae/etc/passwd",
    b"/__probe__/page/..\xc0\xaf..\xc0\xaf..\xc0\xaf..\xc0\xafetc/passwd",
    b"{static} /../../manage.py",
)
LENGTHS = (199, 200, 201, 249, 250, 251, 255, 256, 300)
# Files of a layer that no URL may reach: files beside the pages, and a page under its file name.
OWN_FILES = (
    "/.generation",
    "/%2egeneration",
    "/index.html",
    "{section}index.html",
    "/.tmp-0/",
    "/purged",
    "/microcache/",
)
# Internal cache keys. Browsers cannot request them as paths, but anybody else can.
OWN_KEYS = (b"generation", b"pages:generation")
ESCAPES = (
    "/..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
    "/__probe__/page/..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
    "/__probe__/page/../../../../../../../../etc/passwd",
    "/__probe__/page/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/__probe__/page/..\\..\\..\\..\\..\\etc\\passwd",
    "/__probe__/page/../../manage.py",
    "{section}%2e%2e/%2e%2e/manage.py",
)


@check("path-escapes")
def path_escapes(context: Context) -> Iterator[Finding]:
    """Dot segments and encoded slashes never lead out of the static root, nor to a file of the project."""
    for path in FILES:
        yield from _refused(context, (yield from context.expect(located(context, path), no_file)))
    beside: list[bytes] = []
    for small in context.site.small_files:
        root, file = context.site.static, small.removeprefix(context.site.static_url)
        for path in BESIDE:
            named = path.replace("{above}", root.parent.name).replace("{root}", root.name).replace("{file}", file)
            beside.append(located(context, named))
    # A redirect of a server says that something is there; one of the project adds a slash to any path.
    yield from _none_led(context, beside)


def _none_led(context: Context, paths: Iterable[bytes]) -> Iterator[Finding]:
    """Expect a 4xx for each path, or a redirect to a 4xx that the project itself makes."""
    responses = {path.decode("latin-1"): context.get(path) for path in paths}
    redirects = {path: response.status for path, response in responses.items() if response.redirects}
    own = as_in_project(context.site, redirects)
    for path, response in responses.items():
        yield from _refused(context, response, may_lead=path in own)


@check("odd-paths")
def odd_paths(context: Context) -> Iterator[Finding]:
    """Percent-encoded, non-ASCII and overlong paths get a 4xx, never a server error."""
    paths = [located(context, path) for path in ODD_PATHS]
    paths += [_NUMBER.sub(HUGE, path.encode()) for path in context.site.paths_ending(LIST_PAGE)]
    for path in dict.fromkeys(paths):
        response = yield from context.expect(path, no_header("X-Injected", "no header from the path"))
        yield from _refused(context, response)


@check("broken-escapes")
def broken_escapes(context: Context) -> Iterator[Finding]:
    """A percent sign that encodes nothing gets a 4xx, never another page."""
    yield from _none_led(context, [located(context, path) for path in BROKEN_ESCAPES])


def located(context: Context, path: str | bytes) -> bytes:
    """A path on this site, with placeholders filled in: static files (`bare` without the last slash), one of them
    (`small`), a page with pages below it (`section`), and the file of the settings."""
    site = context.site
    settings = site.description.settings or site.env.get("DJANGO_SETTINGS_MODULE", "settings")
    words = {
        "static": site.static_url,
        "small": site.urls.get("static_small", f"{site.static_url}no-such.txt"),
        "bare": site.static_url.rstrip("/"),
        "section": site.urls.get("section", SECTION),
        "settings": f"{settings.replace('.', '/')}.py",
    }
    if isinstance(path, str):
        path = path.encode()
    for word, stands_for in words.items():
        path = path.replace(b"{%s}" % word.encode(), stands_for.encode())
    return path


def _refused(context: Context, response: PageResponse, *, may_lead: bool = True) -> Iterator[Finding]:
    """Findings unless the response is a 4xx, or a redirect (such as to a normalised path) to a 4xx.

    A project with a page for any path may have one for this path too.
    """
    location = (response.header("Location") or "").removeprefix(context.target.origin)
    if may_lead and response.redirects and location.startswith("/") and not location.startswith("//"):
        response = context.get(location)
    if response.status not in REFUSED and (context.site.has_404 or response.status >= 500):
        yield response.wrong("status 400 to 499")


@check("odd-names", group=NAMES)
def odd_names(context: Context) -> Iterator[Finding]:
    """Each odd name gets its own page, cached or not, in any order of requests; never a 500."""
    base = f"/__probe__/page/{secrets.token_hex(6)}"
    names = [*(f"{name}/" for name in ODD), "x", "x/?", "x/??a"]
    yield from own_pages(context, [f"{base}/{name}" for name in names])


@check("long-names", group=NAMES)
def long_names(context: Context) -> Iterator[Finding]:
    """Names of up to 300 characters that differ only at their end, and of 255 bytes in UTF-8, share no entry."""
    base = f"/__probe__/page/{secrets.token_hex(4)}"
    # Of each length; a URL of 300 characters; many short names; a name that is 255 bytes long once decoded.
    names = ["a" * (length - 1) for length in LENGTHS]
    names += ["a" * (300 - len(base) - 3), "a/" * 120, "%C3%A9" * 127]
    yield from own_pages(context, [f"{base}/{name}{end}/" for name, end in product(names, "bc")])


@check("raw-names", group=NAMES)
def raw_names(context: Context) -> Iterator[Finding]:
    """A raw space or other byte that clients must encode is refused or gets its own page; the encoded name has its own
    page, and no path leads to another file."""
    base = f"/__probe__/page/{secrets.token_hex(6)}/".encode()
    names: list[bytes] = []
    for raw in RAW:
        names += dict.fromkeys((raw, quote(raw).encode()))
    yield from own_pages(context, [base + name + b"/" for name in names])
    for escape in RAW_ESCAPES:
        if response := _response(context, located(context, escape)):
            yield from context.judge(response, no_file, no_server_error)


@check("other-files", group=NAMES)
def other_files(context: Context) -> Iterator[Finding]:
    """No path leads to a file outside the pages, nor to other files of a layer."""
    for path in (*ESCAPES, *OWN_FILES):
        response = yield from context.expect(located(context, path), no_file, no_server_error)
        if path in OWN_FILES and context.site.has_404 and response.status not in (*REFUSED, 301, 302):
            yield response.wrong("status 400 to 499", f"status {response.status}, {len(response.body)} bytes")
    # Servers treat such a request differently, with and without the layer.
    yield from own_pages(context, OWN_KEYS)


def own_pages(context: Context, paths: Sequence[str | bytes]) -> Iterator[Finding]:
    """Expect the same response for each path as past the layer, in both orders."""
    require_probes(context)
    right = {path: _summary(_response(context, path, context.bypass)) for path in paths}
    for path in (*paths, *paths, *reversed(paths)):
        response = _response(context, path)
        if (got := _summary(response)) != right[path]:
            sent = None
            if response:
                sent = response.sent
            yield Mismatch(f"GET {path!r:.80}: {right[path]}", got, sent)
        if response:
            yield from context.judge(response, no_header("X-Injected", "no header from the path"), no_server_error)


def _response(context: Context, path: str | bytes, headers: Headers = ()) -> PageResponse | None:
    """The response; None if the server closed the connection, a right reaction to a malformed request."""
    try:
        return context.get(path, headers)
    except (BadResponse, ConnectionError):
        if isinstance(path, str):
            raise
        return None


def _summary(response: PageResponse | None) -> str:
    """Status and shown path of a page."""
    if response is None:
        return "no response"
    shown = None
    if response.status == 200:
        shown = response.paragraphs.get("path")
    return f"status {response.status}, the page of {shown!r}"
