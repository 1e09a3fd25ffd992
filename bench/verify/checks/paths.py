"""Malicious and malformed paths: none leads out of the static root, none breaks the site."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bench.verify.check import check
from bench.verify.context import Context
from bench.verify.expect import REFUSED, lacks_bytes, no_header
from bench.verify.finding import Finding
from bench.verify.site import LIST_PAGE
from bench.verify.wire import Answer

# Each names a file of the project or of the machine if a server joins it to a directory unchanged. `located` says what
# stands for the words in braces.
ESCAPES = (
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
# Text of the files named above.
SECRETS = (b"execute_from_command_line", b"INSTALLED_APPS", b"root:x:0:0", b"[core]")

ODD = (
    b"/%00",
    b"{section}%00/",
    b"{small}%00.css",
    b"/%ff%fe/",
    b"/caf%C3%A9/",
    "/caf\u00e9/".encode(),
    "/\u4f60\u597d/".encode(),
    b"/%E2%82/",
    b"{static}%ff.css",
    b"{static}%E4%BD%A0.css",
    b"{section}%20/",
    b"{section}1%20/",
    b"{section}%EF%BC%91/",
    b"{section}99999999999999999999999/",
    b"{section}-1/",
    b"{section}1%0d%0aX-Injected:%20yes/",
    b"{static}%0d%0aX-Injected:%20yes",
    b"/" + b"a" * 255 + b"/",
    b"{static}" + b"a" * 255,
    b"{static}" + b"a" * 300 + b".css",
    b"/" + b"a" * 3000 + b"/",
)
# In place of the number that an address of a list ends with.
HUGE = b"99999999999999999999999"
_NUMBER = re.compile(rb"\d+(?=/$)")
# Not percent-encoding at all; a server that drops the malformed part answers with another page.
BROKEN = (b"/%", b"/%zz/", b"{section}%", b"{static}%", b"{static}%zz.css")
# Where a project whose pages are not known has nothing, so that none of its views is asked for an odd number.
SECTION = "/no/such/"

no_file = lacks_bytes(SECRETS, "no such file")


@check("path-escapes")
def path_escapes(context: Context) -> Iterator[Finding]:
    """Dot segments and encoded slashes never lead out of the static root, nor to a file of the project."""
    for path in (located(context, path.encode()).decode() for path in ESCAPES):
        yield from _refused(context, (yield from context.ask(path, no_file)))


@check("odd-paths")
def odd_paths(context: Context) -> Iterator[Finding]:
    """Percent-encoded, non-ASCII and overlong paths get a 4xx, never a server error."""
    lists = [path for kind, path in context.site.urls.items() if kind.endswith(LIST_PAGE)]
    beyond = [_NUMBER.sub(HUGE, path.encode()) for path in lists]
    for path in dict.fromkeys([*(located(context, path) for path in ODD), *beyond]):
        answer = yield from context.ask(path, no_header("X-Injected", "no header from the path"))
        yield from _refused(context, answer)


@check("broken-escapes")
def broken_escapes(context: Context) -> Iterator[Finding]:
    """A percent sign that encodes nothing gets a 4xx, never another page."""
    for path in (located(context, path) for path in BROKEN):
        yield from _refused(context, context.get(path), may_lead=False)


def located(context: Context, path: bytes) -> bytes:
    """A path below those of the site: of its static files (`bare` without the last slash) or one of them (`small`),
    of a page below which there are others (`section`), and of the file of its settings."""
    site = context.site
    settings = site.description.settings or site.env.get("DJANGO_SETTINGS_MODULE", "settings")
    words = {
        "static": site.static_url,
        "small": site.urls.get("static_small", f"{site.static_url}no-such.txt"),
        "bare": site.static_url.rstrip("/"),
        "section": site.urls.get("section", SECTION),
        "settings": f"{settings.replace('.', '/')}.py",
    }
    for word, stands_for in words.items():
        path = path.replace(b"{%s}" % word.encode(), stands_for.encode())
    return path


def _refused(context: Context, answer: Answer, *, may_lead: bool = True) -> Iterator[Finding]:
    """What is wrong unless it is refused or not found, or leads to what is, as a normalised path may.

    A project with a page for any path may have one for this.
    """
    location = (answer.header("Location") or "").removeprefix(context.target.origin)
    if may_lead and answer.redirects and location.startswith("/") and not location.startswith("//"):
        answer = context.get(location)
    if answer.status not in REFUSED and (context.site.has_404 or answer.status >= 500):
        yield answer.wrong("status 400 to 499")
