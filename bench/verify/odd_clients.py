"""Clients that differ from the usual one in a single property that may affect the response."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest

from bench.verify import wire
from bench.verify.context import Context
from bench.verify.wire import PageResponse

# Another address of this machine, and one that nobody has.
SOURCE = "127.0.0.9"
ELSEWHERE = "203.0.113.9"
LOOPBACK = ("127.0.0.1", "localhost")
# A value of the shape that Django takes for a token (32 letters).
TOKEN_VALUE = "VerifyVerifyVerifyVerifyVerifyVe"
PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148"

# Headers by which projects choose a page, with a likely value.
HEADERS = {
    "User-Agent": PHONE,
    "Accept": "application/json",
    "Accept-Language": "de-AT,de;q=0.9",
    "CF-IPCountry": "DE",
    "CloudFront-Viewer-Country": "DE",
    "X-Country-Code": "DE",
    "Sec-CH-UA-Mobile": "?1",
    "Sec-GPC": "1",
    "Save-Data": "on",
    "DNT": "1",
    "Referer": "http://other.example/",
    "Content-Type": "application/json",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "other.example",
    "X-Forwarded-Port": "1",
    "X-Forwarded-Prefix": "/forged",
    "Forwarded": f"for={ELSEWHERE};host=other.example;proto=https",
}
COOKIES = {
    "theme": "dark",
    "country": "DE",
    "currency": "EUR",
    "region": "DE",
    "consent": "1",
    "utm_source": "verify",
    "utm_campaign": "verify",
    "django_language": "de",
}
ADDRESSES = ("X-Forwarded-For", "X-Real-IP", "CF-Connecting-IP", "True-Client-IP")
# Likely values of other names.
VALUES = ("verify", "1", "DE", "dark")
# With these, a request bypasses every cache or does not request a page; other checks test each of them.
BYPASSING = {"authorization", "hx-request", "origin", "x-requested-with", "accept-encoding", "cookie", "range"}
BYPASSING |= {"if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "content-length", "host"}
# Keys of META in Django and WSGI that are not headers.
BYPASSING |= {"server-name", "server-port", "server-protocol", "request-method", "path-info", "query-string"}
BYPASSING |= {"script-name", "remote-addr", "csrf-cookie", "csrf-cookie-needs-update"}
BYPASSING |= {"connection", "transfer-encoding", "expect", "upgrade", "te", "trailer", "x-http-method-override"}


@dataclass(frozen=True)
class OddClient:
    """One client.

    name     the difference, in words
    headers  sent only by this client
    cookies  sent only by this client
    host     the Host header; empty for the usual one
    source   the client's address; empty for the usual one
    version  of HTTP
    like     clients of the same kind, tried only on pages that differ for this client
    alias    whether the host is another spelling of the site's name, so the usual page is right too
    """

    name: str
    headers: tuple[tuple[str, str], ...] = ()
    cookies: tuple[tuple[str, str], ...] = ()
    host: str = ""
    source: str = ""
    version: str = "1.1"
    like: tuple[OddClient, ...] = ()
    alias: bool = False

    def get(self, context: Context, path: str, session: str = "") -> PageResponse:
        """The response to this client; with a `session` of nobody the request goes past every cache."""
        target = replace(context.target, source=self.source)
        cookies = list(self.cookies)
        if session:
            cookies = [*self.cookies, (context.site.session_cookie, session)]
        headers = list(self.headers)
        if cookies:
            headers.append(("Cookie", "; ".join(f"{name}={value}" for name, value in cookies)))
        return wire.fetch(target, path, headers, host=self.host, version=self.version)

    def singles(self) -> list[OddClient]:
        """Clients with one of the headers or cookies each, and similar clients; this client if it has only one."""
        clients = [OddClient(f"{name}: {value}", headers=((name, value),)) for name, value in self.headers]
        clients += [OddClient(f"the cookie {name}={value}", cookies=((name, value),)) for name, value in self.cookies]
        if len(clients) < 2:
            clients = [self]
        return [*clients, *self.like]

    def showing(self, show: str) -> OddClient:
        """This client with only the header or cookie shown by a probe page: others may bypass a cache."""
        name = show.removeprefix("meta ").removeprefix("cookie ").replace("_", "-").lower()
        for single in self.singles():
            if name in [key.replace("_", "-").lower() for key, _ in (*single.headers, *single.cookies)]:
                return single
        if len(self.headers) + len(self.cookies) < 2:
            return self
        return replace(self, headers=(), cookies=())


USUAL = OddClient("nothing")


def by_address(context: Context) -> Iterator[OddClient]:
    """Clients with other addresses, by connection or by a load balancer's headers."""
    if context.target.host in LOOPBACK and context.target.via is None:
        yield OddClient(f"the address {SOURCE}", source=SOURCE)
    yield OddClient("the address in headers", headers=tuple(dict.fromkeys(ADDRESSES, ELSEWHERE).items()))


def by_host(context: Context) -> Iterator[OddClient]:
    """Clients that use the site's other names, or another spelling of its host."""
    target = context.target
    for name in server_names(context):
        if name != target.host:
            spelt = f"{name.title()}:{target.port}", f"{name}.:{target.port}"
            yield _of_host(f"{name}:{target.port}", *spelt, alias=name in LOOPBACK)
    dotted = f"{target.host}.:{target.port}"
    yield _of_host(f"{target.host}:1", f"{target.host}:80", f"{target.host}:443", dotted, alias=True)


def _of_host(host: str, *like: str, alias: bool) -> OddClient:
    return OddClient(
        f"Host: {host}", host=host, like=tuple(_of_host(other, alias=alias) for other in like), alias=alias
    )


def server_names(context: Context) -> list[str]:
    """The names that the deployment serves, one for each wildcard; empty if a --target does not tell."""
    names = str(context.settings.get("server_names", "")).split()
    return [name.replace("*", "verify") for name in names if not name.startswith("~")]


def by_token(context: Context) -> Iterator[OddClient]:
    """A client with its own CSRF cookie, if the token is not in the session."""
    name = context.site.token_cookie
    if name and name != context.site.session_cookie:
        yield OddClient("the CSRF cookie", cookies=((name, TOKEN_VALUE),))


def by_cookies(context: Context) -> Iterator[OddClient]:
    """Clients with common cookies, and with the cookies read by this project."""
    own = {context.site.session_cookie, context.site.token_cookie, "messages", "sessionid"}
    yield OddClient("cookies", cookies=tuple(COOKIES.items()))
    for value in VALUES:
        yield from _with(value, cookies=_names(context, "cookies") - own - COOKIES.keys())


def by_headers(context: Context) -> Iterator[OddClient]:
    """Clients with common headers, and with the headers read by this project."""
    known = {name.lower() for name in (*HEADERS, *ADDRESSES)} | BYPASSING
    old = OddClient("HTTP/1.0", version="1.0")
    yield OddClient("headers", headers=tuple(HEADERS.items()), version="1.0", like=(old,))
    for name in prefix_headers(context):
        yield OddClient(f"{name}: /forged", headers=((name, "/forged"),))
    for value in VALUES:
        yield from _with(value, headers=_names(context, "headers") - known)


def by_language() -> Iterator[OddClient]:
    """Clients that name a language."""
    header, cookie = "Accept-Language", "django_language"
    yield OddClient(f"{header}: {HEADERS[header]}", headers=((header, HEADERS[header]),))
    yield OddClient(f"the cookie {cookie}={COOKIES[cookie]}", cookies=((cookie, COOKIES[cookie]),))


def prefix_headers(context: Context) -> list[str]:
    """Headers from which a server of the deployment takes a prefix of all links; empty if a --target does not tell."""
    names: list[str] = []
    if context.running:
        for server in context.running.case.servers:
            names += server.prefix_headers
    return names


KINDS = (by_address, by_host, by_token, by_cookies, by_headers)


def merged(context: Context) -> list[OddClient]:
    """Few clients with the differences of all kinds: each has one client of each kind in it."""
    kinds = [list(clients(context)) for clients in KINDS]
    combined_clients: list[OddClient] = []
    for those in zip_longest(*kinds, fillvalue=USUAL):
        combined_clients.append(_at_once(those))
    return combined_clients


def _at_once(clients: Iterable[OddClient]) -> OddClient:
    """One client with the differences of these clients."""
    ways = USUAL
    for client in clients:
        ways = replace(
            ways,
            headers=(*ways.headers, *client.headers),
            cookies=(*ways.cookies, *client.cookies),
            host=ways.host or client.host,
            source=ways.source or client.source,
            version=min(ways.version, client.version),
        )
    return ways


def _names(context: Context, kind: str) -> set[str]:
    """The names read by renderings of the project's pages, for pages that can be rendered."""
    if not context.site.has_database:
        return set()
    names: set[str] = set()
    for page in context.site.pages.values():
        names.update(page.reads.get(kind, []))
    return names


def _with(value: str, headers: Iterable[str] = (), cookies: Iterable[str] = ()) -> Iterator[OddClient]:
    """A client with this value under each of these names, if any."""
    client = OddClient(
        f"the value {value}",
        tuple(dict.fromkeys(sorted(headers), value).items()),
        tuple(dict.fromkeys(sorted(cookies), value).items()),
    )
    if client.headers or client.cookies:
        yield client
