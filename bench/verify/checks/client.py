"""The site's view of its client, and claims of clients: host, scheme, address, odd headers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bench import PROGRAM
from bench.serve.machine.http import HEALTHY, BadResponse
from bench.serve.project.health import UNKNOWN_PATH
from bench.verify.check import check, excused
from bench.verify.checks.page_content import leads_to, redirecting
from bench.verify.context import BEHIND, Context, is_trusted
from bench.verify.expect import Expectation, status, status_in
from bench.verify.hits import worker_facts
from bench.verify.mismatch import NEEDS_PROBES, Finding, NotTried
from bench.verify.odd_clients import LOOPBACK, prefix_headers
from bench.verify.page_parser import TOKEN, ParsedPage
from bench.verify.site import INSIDE
from bench.verify.visitor import Visitor
from bench.verify.wire import PageResponse

FOREIGN = "other.example"
# A link with the prefix or the host of a forged header.
FORGED = re.compile(rf"^/forged\b|//{re.escape(FOREIGN)}\b")
# Hosts that a balancer names.
ADDRESSES = ("10.20.30.40", "10.20.30.40:8000")
SCHEMES = {"http": "https", "https": "http"}
CLIENT = "127.0.0.1"
# A load balancer's headers about a client who claims another address, and the right conclusion.
BALANCED = {"X-Forwarded-For": "203.0.113.9, 203.0.113.7", "X-Forwarded-Proto": "https"}
BELIEVED = {"client": "203.0.113.7", "scheme": "https"}
# Addresses written by a client before those added by load balancers.
CLAIMED = ("203.0.113.7", "2001:db8::7")
# A strict site has a middleware that takes the address from a header.
NO_ADDRESS = (
    "the site sees no address of a client: a Unix socket has none, and the project reads no header of the proxy"
)
EXCUSES = {"no address": NO_ADDRESS, "port": ""}
# Session cookies that the site never set: NUL, which PostgreSQL refuses in a text, bytes that are not UTF-8, a lone
# escape, a value far too long.
NUL = r'"abcdefgh\000"'
ODD_SESSIONS = (NUL, "abcdefgh\udcff", r'"abcdefgh\3"', "a" * 4000, "abcdefgh'--")
# One byte that is no UTF-8 and no ASCII; see http.build.
ODD_BYTE = "http\udcff"
# A header that no server and no site knows.
UNKNOWN_NAME = "X_Verify_Name"
HEADER_COUNTS = (110, 130, 200, 500, 2000)


def forged_headers(context: Context) -> dict[str, str]:
    """Headers of a client that pretends to be another client, or to have requested another host."""
    scheme, address = SCHEMES[context.target.scheme], "203.0.113.7"
    return {
        **dict.fromkeys(("X-Forwarded-Proto", "X-Forwarded-Scheme", "X-Scheme", "FrontProto"), scheme),
        **dict.fromkeys(("X-Forwarded-Host", "X-Forwarded-Server"), FOREIGN),
        **dict.fromkeys(("X-Forwarded-For", "X-Real-IP", "FrontAddress"), address),
        **dict.fromkeys(("X-Forwarded-Prefix", "Script-Name", "X-Script-Name"), "/forged"),
        **dict.fromkeys(prefix_headers(context), "/forged"),
        **dict.fromkeys(("Path-Info", "X-Original-URL", "X-Rewrite-URL"), "/forged/"),
        **dict.fromkeys(("X-Forwarded-Ssl", "Front-End-Https"), "on"),
        "X-Forwarded-Protocol": "ssl",
        "X-Forwarded-Port": "1",
        "Forwarded": f"for={address};host={FOREIGN};proto={scheme}",
        "X-HTTP-Method-Override": "DELETE",
        "Proxy": f"http://{FOREIGN}/",
    }


def with_underscores(context: Context) -> dict[str, str]:
    """The same headers with underscores, which CGI cannot tell from dashes."""
    return {name.replace("-", "_"): value for name, value in forged_headers(context).items()}


def inside_facts(context: Context, response: PageResponse) -> dict[str, Any]:
    """A worker's report on itself and on the request; raises NotTried without such a probe."""
    if response.status == 404:
        raise NotTried(NEEDS_PROBES)
    facts: dict[str, Any] = {}
    if response.status == 200:
        facts = json.loads(response.body)
    return facts


@check("unknown-host")
@excused({"own 500": "the project sends its own 500 to an unknown host: Django raises DisallowedHost"})
def unknown_host(context: Context) -> Iterator[Finding]:
    """An unknown host gets a 400, also for cached pages; the right host still gets its pages afterwards."""
    if "*" in worker_facts(context).get("allowed_hosts", []):
        raise NotTried(f"its ALLOWED_HOSTS has *: the project accepts any host, see `{PROGRAM} doctor`")
    pages = [path for path in context.site.main_paths if path not in context.site.description.health_checks]
    for path in [*pages, context.site.urls.get("login", UNKNOWN_PATH)]:
        for host in (FOREIGN, f"{FOREIGN}:{context.target.port}", "bad host"):
            response = context.get(path, host=host)
            yield from context.judge(response, status(400), excuse={500: "own 500"}.get(response.status, ""))
    yield from context.expect(context.site.url("home"), status(200), when="with the right Host after that")


@check("health-by-address")
def health_by_address(context: Context) -> Iterator[Finding]:
    """A load balancer's health check by address gets a status of success."""
    if not context.site.description.health_checks:
        raise NotTried(f"the project has no page only for health checks: name one as health, see `{PROGRAM} doctor`")
    for path in context.site.description.health_checks:
        for host in ADDRESSES:
            yield from context.expect(path, status_in(HEALTHY, "status 200 to 299"), host=host)


@check("no-host")
@excused({"taken": "no server here refuses it: it is taken for one to the server's own address"})
def no_host(context: Context) -> Iterator[Finding]:
    """An HTTP/1.1 request without a Host header gets a 400 (RFC 9112, section 3.2)."""
    response = context.get(context.site.url("home"), host=None)
    yield from context.judge(response, status(400), excuse={200: "taken"}.get(response.status, ""))


def own_links() -> Expectation:
    """Expect a page whose links, scripts and styles have nothing of the forged headers."""

    def wrong(response: PageResponse) -> str | None:
        page = ParsedPage(response.text)
        forged = [link for link in (*page.links, *page.scripts, *page.styles) if FORGED.search(link)]
        if not forged:
            return None
        return f"a link to {forged[0]}"

    return Expectation("links without the forged headers", wrong)


def require_stranger(context: Context) -> None:
    """Raise NotTried if every address of this machine is a trusted proxy."""
    if context.settings.get("listener") == BEHIND and not context.target.source:
        raise NotTried("trusted_proxies includes this machine, so every header is believed")


@check("forged-headers", require_stranger)
@excused({"form": ""})
def forged(context: Context) -> Iterator[Finding]:
    """Forged X-Forwarded-* and similar headers change neither a redirect nor a link of the home page, nor the origin
    required by forms."""
    login = context.site.urls.get("login")
    visitor, token = Visitor(context.target), ""
    if login:
        token = visitor.token(login) or ""
    for claim in forged_headers(context).items():
        for path, _, location in redirecting(context)[:1]:
            yield from context.expect(path, leads_to(context, location), headers=[claim])
        yield from context.expect(context.site.url("home"), own_links(), headers=[claim])
        if login and token:
            # A form without a password gets the form again, unless the site believes in another origin.
            form = visitor.post(login, {TOKEN: token, "username": "forged", "password": ""}, dict([claim]))
            if form.status != 200:
                # A project may send another status than 403 for an empty form.
                yield form.wrong("status 200", excuse={403: ""}.get(form.status, "form"))


@check("forged-names", require_stranger)
def forged_names(context: Context) -> Iterator[Finding]:
    """A header name with underscores never overwrites the server's variable of the same name."""
    for claim in with_underscores(context).items():
        for path, _, location in redirecting(context)[:1]:
            response = context.get(path, [claim])
            if response.status not in (400, 403):
                yield from context.judge(response, leads_to(context, location))


@check("interpreter")
def interpreter(context: Context) -> Iterator[Finding]:
    """A worker runs the Python and the Django of the project's environment, and not as root unless configured."""
    if not context.site.has_database:
        raise NotTried("its Python is not known: give --database, if the site runs from this checkout")
    response = yield from context.expect(INSIDE, status(200), when="(a site with the app `bench.serve.inside`)")
    if response.status == 200:
        facts = json.loads(response.body)
        for name, expected in context.site.interpreter.items():
            if facts[name] != expected:
                yield response.wrong(f"{name} {expected} inside a worker", str(facts[name]))
        if facts["user_id"] == 0 and os.environ.get("BENCH_USER") != "root":
            yield response.wrong("a worker of an ordinary user", "user id 0, root")


@check("client", require_stranger)
@excused(EXCUSES)
def client(context: Context) -> Iterator[Finding]:
    """The site sees the client's real address, scheme, host and port, whatever the client claims in headers."""
    for claims in ([], *([claim] for claim in forged_headers(context).items())):
        response = yield from context.expect(INSIDE, status(200), headers=claims)
        if response.status != 200:
            return
        yield from _compared(context, response)
    if context.settings.get("listener") == BEHIND:
        yield from _balanced(context)


def _balanced(context: Context) -> Iterator[Finding]:
    """Compare the client derived from a load balancer's headers: the last address of no proxy, and the scheme."""
    if not is_trusted(CLIENT, context.settings):
        yield NotTried("trusted_proxies has no address of this machine: what a balancer says cannot be tried")
        return
    balancer = replace(context, target=replace(context.target, source=CLIENT))
    response = yield from balancer.expect(INSIDE, status(200), headers=BALANCED)
    if response.status != 200:
        return
    facts = json.loads(response.body)
    excuse = ""
    if not facts.get("client"):
        excuse = "no address"
    for name, expected in BELIEVED.items():
        if facts.get(name, expected) != expected:
            words = f"{name} {expected} as the site sees it, by a trusted proxy"
            yield response.wrong(words, str(facts[name]), excuse=excuse)


@check("forwarded-for")
def forwarded_for(context: Context) -> Iterator[Finding]:
    """The first address in a client's X-Forwarded-For is never used as the client's address, whichever proxies are
    trusted, and no web server hands it on to a project that might use it."""
    for claimed in CLAIMED:
        for then in ("198.51.100.7", "198.51.100.7, 127.0.0.1"):
            response = context.get(INSIDE, {"X-Forwarded-For": f"{claimed}, {then}"})
            facts = inside_facts(context, response)
            if facts.get("client") == claimed:
                yield response.wrong("another client than the first of X-Forwarded-For", f"client {claimed}")
            if _has_web_server(context) and facts.get("forwarded_for", "").startswith(claimed):
                yield response.wrong("an X-Forwarded-For of the web server's", f"the client's, with {claimed}")


def _has_web_server(context: Context) -> bool:
    """True if a web server of the deployment is between clients and the application server, or is both."""
    if context.running is None:
        return False
    case = context.running.case
    return len(case.servers) > 1 or case.web_server_has_static_files


@check("underscores", require_stranger)
@excused(EXCUSES)
def underscores(context: Context) -> Iterator[Finding]:
    """A header name with underscores is refused, dropped, or without effect on the site."""
    for claim in with_underscores(context).items():
        response = context.get(INSIDE, [claim])
        if inside_facts(context, response):
            yield from _compared(context, response)
        else:
            yield from context.judge(response, status(200, 400, 403))


def _compared(context: Context, response: PageResponse) -> Iterator[Finding]:
    """Compare the client and the address as the site sees them."""
    target, facts = context.target, json.loads(response.body)
    right = {"scheme": target.scheme, "host": target.netloc, "port": str(target.port)}
    if target.host in LOOPBACK:
        # The client's address as seen from elsewhere is not known here.
        right["client"] = target.source or CLIENT
    # Django makes addresses of Host only: few projects have a middleware for the port behind a front.
    excuses = {"port": "port"}
    if not facts["client"]:
        excuses["client"] = "no address"
    for name, expected in right.items():
        if facts[name] != expected:
            excuse = excuses.get(name, "")
            yield response.wrong(f"{name} {expected} as the site sees it", str(facts[name]), excuse=excuse)


@check("odd-cookies")
@excused({"NUL": "a NUL in the session cookie is a 500 of Django's own sessions on this database"})
def odd_cookies(context: Context) -> Iterator[Finding]:
    """A session cookie of any other shape than the site's own is no session: the page, or a 400."""
    for path in context.site.paths("home", "detail", "login"):
        for value in ODD_SESSIONS:
            response = context.get(path, {"Cookie": f"{context.site.session_cookie}={value}"})
            excuse = ""
            if response.status == 500 and value == NUL:
                excuse = "NUL"
            yield from context.judge(response, status(200, 400), excuse=excuse)


@check("odd-bytes")
def odd_bytes(context: Context) -> Iterator[Finding]:
    """A byte above 0x7f in a header that names the client, also spelt with underscores, costs no worker and no 5xx."""
    # A page that no layer caches: the byte comes as far as the application.
    login = context.site.urls.get("login", INSIDE)
    for name in (*forged_headers(context), *with_underscores(context)):
        yield from context.expect(login, status(200, 400), headers={name: ODD_BYTE})


@check("underscores-dropped")
def underscores_dropped(context: Context) -> Iterator[Finding]:
    """A header name with underscores is refused or dropped in front of the site: CGI reads underscores as dashes."""
    response = context.get(INSIDE, {UNKNOWN_NAME: "yes"})
    if UNKNOWN_NAME.lower().replace("_", "-") in inside_facts(context, response).get("headers", []):
        yield response.wrong("refused, or without the header", "the site was given it")
    yield from context.judge(response, status(200, 400, 403))


@check("many-headers")
def many_headers(context: Context) -> Iterator[Finding]:
    """A request with 110 to 2,000 headers gets its page, or is refused with 400, 413 or 431."""
    home = context.site.url("home")
    for count in HEADER_COUNTS:
        headers = [(f"X-Verify-{number}", "1") for number in range(count)]
        try:
            response = context.get(home, headers)
        except (BadResponse, OSError) as error:
            raise BadResponse(f"GET {home} with {count} headers: {error}") from None
        if response.status not in (200, 400, 413, 431):
            yield response.wrong("status 200, 400, 413 or 431", what=f"GET {home} with {count} headers")
