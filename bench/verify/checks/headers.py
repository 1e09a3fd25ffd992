"""Requests with odd headers: each gets its page or is refused, and no worker dies of it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from bench.verify.check import check
from bench.verify.checks.hosts import forged_headers, with_underscores
from bench.verify.checks.inside import CLIENT, HERE, NO_ADDRESS
from bench.verify.context import Context
from bench.verify.finding import NEEDS_PROBES, Finding, Mismatch, NotTried
from bench.verify.site import INSIDE
from bench.verify.wire import BadAnswer

# Values of the session cookie that the site never gave out: NUL, which PostgreSQL refuses in a text, bytes that are no
# UTF-8, a lone escape, one far too long.
NUL = r'"abcdefgh\000"'
ODD_SESSIONS = (NUL, "abcdefgh\udcff", r'"abcdefgh\3"', "a" * 4000, "abcdefgh'--")
# One byte that is no UTF-8 and no ASCII; see wire.build.
ODD_BYTE = "http\udcff"
# A header that no server and no site knows.
UNKNOWN_NAME = "X_Verify_Name"
HEADER_COUNTS = (110, 130, 200, 500, 2000)
# The page, or the refusals that say what is wrong: 413 and 431 name the size.
TOO_MANY = (200, 400, 413, 431)


@check("odd-cookies")
def odd_cookies(context: Context) -> Iterator[Finding]:
    """A session cookie of any other shape than the site's own is no session: the page, or a 400."""
    kinds = ("home", "detail", "login")
    for path in dict.fromkeys(context.site.urls[kind] for kind in kinds if kind in context.site.urls):
        for value in ODD_SESSIONS:
            got = context.get(path, {"Cookie": f"{context.site.session_cookie}={value}"}).status
            if got == 500 and value == NUL and not context.strict:
                yield NotTried("a NUL in the session cookie is a 500 of Django's own sessions on this database")
            elif got not in (200, 400):
                yield Mismatch(
                    f"GET {path} with {context.site.session_cookie}={value[:40]!a}: status 200 or 400", f"status {got}"
                )


@check("odd-bytes")
def odd_bytes(context: Context) -> Iterator[Mismatch]:
    """A byte above 0x7f in a header that names the client, also spelt with underscores, costs no worker and no 5xx."""
    # A page that no layer caches: the byte comes as far as the application.
    login = context.site.urls.get("login", INSIDE)
    forged = forged_headers(context)
    for name in (name for each in (*forged, *with_underscores(forged)) for name in each):
        try:
            got = f"status {context.get(login, {name: ODD_BYTE}).status}"
        except (BadAnswer, OSError) as error:
            got = str(error)
        if got not in ("status 200", "status 400"):
            yield Mismatch(f"GET {login} with {name}: {ODD_BYTE!a}: status 200 or 400", got)


@check("underscores")
def underscores(context: Context) -> Iterator[Finding]:
    """A header name with underscores is refused, dropped, or without effect on the site."""
    right = {"scheme": context.target.scheme, "host": context.target.netloc}
    if context.target.host in HERE:
        right["client"] = CLIENT
    for forged in with_underscores(forged_headers(context)):
        answer = context.get(INSIDE, forged)
        if answer.status == 404:
            raise NotTried(NEEDS_PROBES)
        if answer.status in (400, 403):
            continue
        what = "".join(f"{name}: {value}" for name, value in forged.items())
        if answer.status != 200:
            yield Mismatch(f"GET {INSIDE} with {what}: status 200, 400 or 403", f"status {answer.status}")
            continue
        found = json.loads(answer.body)
        if not found["client"] and not context.strict and right.pop("client", ""):
            yield NotTried(NO_ADDRESS)
        for name, expected in right.items():
            if found[name] != expected:
                yield Mismatch(f"{name} {expected} as the site sees it, with {what}", str(found[name]))


@check("underscores-dropped")
def underscores_dropped(context: Context) -> Iterator[Mismatch]:
    """A header name with underscores is refused or dropped before it reaches the site: CGI takes them for dashes."""
    answer = context.get(INSIDE, {UNKNOWN_NAME: "yes"})
    if answer.status == 404:
        raise NotTried(NEEDS_PROBES)
    if answer.status == 200 and UNKNOWN_NAME.lower().replace("_", "-") in json.loads(answer.body)["headers"]:
        yield Mismatch(f"GET {INSIDE} with {UNKNOWN_NAME}: refused, or without it", "the site was given it")
    elif answer.status not in (200, 400, 403):
        yield Mismatch(f"GET {INSIDE} with {UNKNOWN_NAME}: status 200, 400 or 403", f"status {answer.status}")


@check("many-headers")
def many_headers(context: Context) -> Iterator[Mismatch]:
    """A request with 110 to 2,000 headers gets its page, or is refused with 400, 413 or 431."""
    home = context.site.url("home")
    for count in HEADER_COUNTS:
        try:
            status = context.get(home, [(f"X-Verify-{number}", "1") for number in range(count)]).status
        except (BadAnswer, OSError) as error:
            yield Mismatch(f"GET {home} with {count} headers: status 200, 400, 413 or 431", str(error))
            continue
        if status not in TOO_MANY:
            yield Mismatch(f"GET {home} with {count} headers: status 200, 400, 413 or 431", f"status {status}")
