"""Mistakes of the real site, of its servers and of a cache before it, one line each, by name.

AFTER changes the response, RULES a rule of the cache (mutant_cache.py). Faults of the wire are only names:
mutant_server.py makes them.
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.bench.verify.mutant_cache import RULES as RIGHT
from tests.bench.verify.mutant_cache import VISITORS, Request, Response, key_without

After = Callable[[Any, Request, Response], Response | None]
LISTED = "/posts/"
PAGE = "/__probe__/page/"
TOKEN = b'<form><input type="hidden" name="csrfmiddlewaretoken" value="%s"></form></body>'
SIGNED_IN = re.compile(rb"verify-[0-9a-f]{16}")
HASH = re.compile(rb"\.[0-9a-f]{12}(?=\.[a-z]+\b)")
SESSION = re.compile("(; )?sessionid=nobody[0-9a-f]*")
COMMENT = re.compile(rb"verified [0-9a-f]{16}")


def html(response: Response) -> bool:
    return response.header("content-type").startswith("text/html")


def page(request: Request, response: Response) -> bool:
    """True for a page of the site, anonymous or not."""
    return response.status == 200 and html(response) and not request.path.startswith(("/__probe__", "/login/"))


def at(path: str, status: int = 200) -> After:
    """Another status at the path."""
    return lambda _, request, response: replace(response, status=status) if request.path.startswith(path) else None


def statuses(old: int, new: int, path: str = "/") -> After:
    """One status in place of another below a path."""
    return lambda _, q, a: replace(a, status=new) if a.status == old and q.path.startswith(path) else None


def on_pages(change: Callable[[Request, Response], Response]) -> After:
    return lambda _, request, response: change(request, response) if page(request, response) else None


def body(old: bytes, new: bytes, path: str = "/") -> After:
    """Other bytes in the body."""
    return lambda _, q, a: replace(a, body=a.body.replace(old, new)) if q.path.startswith(path) else None


def headers(path: str = "/", drop: tuple[str, ...] = (), **put: str) -> After:
    """Headers left out and put in."""
    return lambda _, q, a: a.without(*drop).having(**put) if q.path.startswith(path) else None


def inside(**values: Any) -> After:
    """Values reported by a worker."""

    def change(_: Any, request: Request, response: Response) -> Response | None:
        if request.path != "/__probe__/inside" or response.status != 200:
            return None
        given = {name: value(request) if callable(value) else value for name, value in values.items()}
        return replace(response, body=json.dumps(json.loads(response.body) | given).encode())

    return change


def leads(location: Callable[[Request, str], str]) -> After:
    """Redirects elsewhere."""
    return lambda _, q, a: a.having(Location=location(q, a.header("location"))) if a.header("location") else None


def first_for_all(mutant: Any, request: Request, response: Response) -> Response | None:
    """As a view cached without its visitor: everybody gets the first visitor's page."""
    return mutant.kept.setdefault((request.path, request.query), response) if page(request, response) else None


def connections_run_out(mutant: Any, request: Request, response: Response) -> Response | None:
    """Every twentieth response is an error, however many requests arrive at once."""
    number = next(mutant.kept.setdefault("responses", itertools.count()))
    return replace(response, status=500) if number % 20 == 19 else None


def first_for_all_of_a_process(mutant: Any, request: Request, response: Response) -> Response | None:
    """The same if each of eight processes, used in turn, has a separate cache."""
    if not page(request, response):
        return None
    turn = mutant.kept[request.path] = mutant.kept.get(request.path, -1) + 1
    return mutant.kept.setdefault((request.path, request.query, turn % 8), response)


def first_shown(kind: str) -> After:
    """Each page shows a property of its visitor, and a cache in the project gives the first one's page to everybody."""

    def change(mutant: Any, request: Request, response: Response) -> Response | None:
        shown = VISITORS[kind](request)
        if "/purge/" in request.path:
            mutant.kept.clear()
        if not page(request, response):
            return None
        if "sessionid" not in request.header("cookie") and not request.query:
            shown = mutant.kept.setdefault((request.path, kind), shown)
        return replace(response, body=response.body + SESSION.sub("", shown).encode())

    return change


def shown_right(mutant: Any, request: Request, response: Response) -> Response | None:
    """Each page shows the address of its visitor, and is rendered for each."""
    return replace(response, body=response.body + request.client.encode()) if page(request, response) else None


def kept_for_all(mutant: Any, request: Request, response: Response) -> Response | None:
    """The anonymous page for everybody, after its first request."""
    if page(request, response) and "sessionid" not in request.header("cookie"):
        mutant.kept[request.path] = response
    return mutant.kept.get(request.path) if page(request, response) else None


def shows_never(mutant: Any, request: Request, response: Response) -> Response | None:
    """Rolled-back texts stand on each page."""
    if request.path.endswith("/roll-back/"):
        mutant.kept["never"] = " ".join(json.loads(response.body)["never"]).encode()
    return replace(response, body=response.body + mutant.kept.get("never", b"")) if page(request, response) else None


def slowly(seconds: float, when: Callable[[Any, Request], bool]) -> After:
    def change(mutant: Any, request: Request, response: Response) -> None:
        if when(mutant, request):
            time.sleep(seconds)

    return change


def one_by_one(mutant: Any, request: Request, response: Response) -> None:
    """Each waits for the rendering of the one before."""
    if "/answer/" in request.path:
        with mutant.one:
            time.sleep(0.3)


def packed(mutant: Any, request: Request, response: Response) -> Response | None:
    """Compressed for clients that accept gzip, without telling caches."""
    right = (
        response.status == 200
        and "gzip" in request.header("accept-encoding")
        and not response.header("content-encoding")
    )
    coded = replace(response, body=gzip.compress(response.body)).having(Content_Encoding="gzip")
    return coded.without("vary") if right and html(response) else None


def full(mutant: Any) -> bool:
    return not mutant.cache.has_room


def litters(mutant: Any, request: Request, response: Response) -> None:
    if full(mutant):
        (mutant.cache.folder / f".{secrets.token_hex(8)}").touch()


def aborted(mutant: Any, request: Request, response: Response) -> None:
    """The row is made, and its client gets no response."""
    if request.path == "/__probe__/rows/":
        raise ConnectionAbortedError


def flooded(mutant: Any, request: Request, response: Response) -> None:
    """A request for a made-up host empties the cache."""
    if ".example" in request.header("host"):
        mutant.cache.pages.clear()


def full_brings_back(mutant: Any, request: Request, response: Response) -> None:
    if request.path == "/__probe__/fill/":
        mutant.cache.pages = dict(mutant.cache.purged)


def once(mark: Callable[[Request], object], then: Callable[[Response], Response]) -> After:
    """After a request with the mark, later responses with a page are changed."""

    def change(mutant: Any, request: Request, response: Response) -> Response | None:
        if mark(request):
            mutant.kept["marked"] = True
            return None
        return then(response) if mutant.kept.get("marked") and html(response) else None

    return change


def stores_errors(mutant: Any, request: Request, response: Response) -> Response | None:
    """An error provoked by a header is stored for later requests of the page."""
    if request.header("x-http-method-override"):
        mutant.kept[request.path] = replace(response, status=405, body=b"")
    return mutant.kept.get(request.path)


def lasts_as_declared(mutant: Any, request: Request, response: Response) -> Response | None:
    """A page with a long lifetime in X-Accel-Expires stays cached."""
    return mutant.kept.setdefault(request.path, response) if response.header("x-accel-expires") == "3600" else None


def disguised(request: Request) -> bool:
    """True if the path looks like a static file."""
    return request.path.rstrip("/").endswith(".css")


# As a worker of an ordinary user, also if root runs the tests, behind a web server that says who the client is.
ALWAYS = ("ordinary-user",)
AFTER: dict[str, After] = {
    "ordinary-user": inside(user_id=65534, forwarded_for=lambda q: q.client),
    "error-everywhere": at("/", 500),
    "error-for-hosts": lambda _, q, a: replace(a, status=500) if "127.0.0.1" not in q.header("host") else None,
    "soft-404": statuses(404, 200),
    "other-content": body(b"post", b"pest", LISTED),
    "other-charset": on_pages(lambda _, a: a.having(Content_Type="text/html; charset=latin-1")),
    "token-on-pages": on_pages(lambda _, a: replace(a, body=a.body.replace(b"</body>", TOKEN % b"abc"))),
    "cookie-on-pages": on_pages(lambda _, a: a.having(Set_Cookie="seen=1; Path=/")),
    "session-on-pages": on_pages(
        lambda q, a: a if q.header("cookie") else a.having(Set_Cookie="sessionid=of-nobody; Path=/")
    ),
    "no-render-id": headers(drop=("x-render-id",)),
    "same-render-id": headers(X_Render_Id="same"),
    "no-picture": lambda _, q, a: (
        replace(a, status=404) if q.path.endswith((".svg", ".png", ".ico", ".webp")) else None
    ),
    "octets": headers("/static/", Content_Type="application/octet-stream"),
    "gzip-varies-not": packed,
    "gzip-not": lambda _, q, a: a.having(Content_Encoding="gzip") if "gzip" in q.header("accept-encoding") else None,
    "plain-404": lambda _, q, a: replace(a, body=b"not here") if a.status == 404 else None,
    "last-page-for-any": lambda _, q, a: replace(a, status=200) if "999999999" in q.path else None,
    "bare-500": lambda _, q, a: a.having(Content_Type="text/plain") if a.status == 500 else None,
    "soft-500": statuses(500, 200),
    "tells-500": lambda _, q, a: replace(a, body=b"Traceback (most recent)") if a.status == 500 else None,
    "head-without-type": lambda _, q, a: a.without("content-type") if q.method == "HEAD" else None,
    "tags": on_pages(lambda _, a: a.having(ETag='"a-tag"')),
    "never-304": lambda _, q, a: replace(a, status=200) if a.status == 304 else None,
    "always-304": lambda _, q, a: replace(a, status=304, body=b"") if q.header("if-none-match") else None,
    "port-lost": leads(lambda _, path: f"http://127.0.0.1{path}"),
    "absolute": leads(lambda q, path: f"http://{q.header('host')}{path}"),
    "short-small": lambda _, q, a: replace(a, body=a.body[:-9]) if q.path.startswith("/static/") else None,
    "gzip-other-file": lambda _, q, a: replace(a, body=gzip.compress(b"x")) if a.header("content-encoding") else None,
    "plain-css": lambda _, q, a: a.without("content-encoding") if q.path.endswith(".css") else None,
    "short-lived": headers("/static/", Cache_Control="max-age=60"),
    "plain-immutable": headers("/static/", Cache_Control="public, max-age=315360000, immutable"),
    "unhashed": lambda _, q, a: replace(a, body=HASH.sub(b"", a.body)) if html(a) else None,
    "no-validator": headers("/static/", drop=("etag", "last-modified")),
    "serves-manifest": at("/static/staticfiles.json", 200),
    "no-ranges": lambda _, q, a: replace(a, status=200) if a.status == 206 else None,
    "refuses-ranges": lambda _, q, a: replace(a, status=416) if q.header("range") else None,
    "wrong-total": lambda _, q, a: a.having(Content_Range="bytes 0-98/7") if a.status == 206 else None,
    "odd-range-fails": lambda _, q, a: replace(a, status=503) if "9-1" in q.header("range") else None,
    "escapes": lambda _, q, a: replace(a, body=b"root:x:0:0") if "passwd" in q.path else None,
    "serves-beside": lambda _, q, a: replace(a, status=200) if q.path.startswith("/static..") else None,
    "leads-beside": lambda _, q, a: (
        replace(a, status=301).having(Location="/no-such/") if q.path.startswith("/static..") else None
    ),
    "odd-breaks": lambda _, q, a: replace(a, status=500) if "%00" in q.path else None,
    "odd-injects": lambda _, q, a: a.having(X_Injected="yes") if "X-Injected" in q.path else None,
    "percent-leads": lambda _, q, a: replace(a, status=301).having(Location="/x/") if q.path == "/%" else None,
    "percent-dropped": lambda _, q, a: replace(a, status=200) if q.path == "/%" else None,
    "prefixes-links": lambda _, q, a: (
        replace(a, body=a.body.replace(b'href="/', b'href="/forged/')) if q.header("x-forwarded-prefix") else None
    ),
    "any-host": lambda _, q, a: replace(a, status=200) if a.status == 400 else None,
    "health-by-name": lambda _, q, a: replace(a, status=400) if q.header("host").startswith("10.") else None,
    "believes-host": leads(lambda q, path: f"http://{q.header('x-forwarded-host') or q.header('host')}{path}"),
    "other-python": inside(python="2.7.18"),
    "as-root": inside(user_id=0),
    "no-probe": at("/__probe__/inside", 404),
    "probe-garbled": body(b"{", b"<", "/__probe__/inside"),
    "believes-address": inside(client=lambda q: q.header("x-forwarded-for") or "127.0.0.1"),
    "believes-first": inside(client=lambda q: q.header("x-forwarded-for").partition(",")[0] or q.client),
    "passes-forwarded-for": inside(forwarded_for=lambda q: q.header("x-forwarded-for")),
    "names-public": inside(public=["/"]),
    "believes-proto": inside(scheme=lambda q: q.header("x-forwarded-proto") or "http"),
    "odd-session-breaks": lambda _, q, a: replace(a, status=500) if "000" in q.header("cookie") else None,
    "shared-token": body(b'name="csrfmiddlewaretoken" value="', b'name="csrfmiddlewaretoken" value="same" title="'),
    "no-csrf": statuses(403, 302),
    "login-fails": lambda _, q, a: replace(a, status=200) if q.method == "POST" and q.path == "/login/" else None,
    "cookie-for-scripts": lambda _, q, a: a.having(Set_Cookie=a.header("set-cookie").replace("HttpOnly", "")),
    "login-elsewhere": leads(lambda q, path: "//other.example/" if q.path == "/login/" else path),
    "nameless": lambda _, q, a: replace(a, body=SIGNED_IN.sub(b"You", a.body)),
    "not-private": on_pages(lambda _, a: a.having(Cache_Control="no-cache")),
    "shown-after-logout": on_pages(lambda _, a: a.having(Cache_Control="private")),
    "anonymous-for-all": kept_for_all,
    "first-for-all": first_for_all,
    "first-of-a-process": first_for_all_of_a_process,
    "comment-lost": lambda _, q, a: replace(a, body=COMMENT.sub(b"", a.body)),
    "late-for-others": lambda _, q, a: None if q.header("cookie") else replace(a, body=COMMENT.sub(b"", a.body)),
    "no-form": body(b"<textarea", b"<p"),
    "anonymous-comments": lambda _, q, a: a.having(Location="/") if q.path.endswith("/comment/") else None,
    "session-lives": body(b"</body>", b'<form action="/logout/"></form></body>'),
    "logins-unlimited": statuses(429, 200),
    "login-unlimited": statuses(429, 200, "/login/"),
    "admin-unlimited": statuses(429, 200, "/admin/login/"),
    "spaces-unlimited": lambda _, q, a: replace(a, status=200) if a.status == 429 and b"username=+" in q.body else None,
    "miscounts": lambda _, q, a: (
        replace(a, body=a.body.replace(b" authors, ", b"1 authors, ")) if q.path == "/" else None
    ),
    "counts-what-moved": body(b"1 comment<", b"2 comments<", LISTED),
    "purges-for-all": lambda m, q, _: m.cache.purge() if q.method == "PURGE" else None,
    "limit-without-time": headers(drop=("retry-after",)),
    "limits-the-form": lambda _, q, a: replace(a, status=429) if (q.method, q.path) == ("GET", "/login/") else None,
    "limits-the-admin": at("/admin/login/", 429),
    "upload-breaks": lambda _, q, a: replace(a, status=500) if len(q.body) > 500_000 else None,
    "breaks-on-upgrade": lambda _, q, a: replace(a, status=502) if q.header("upgrade") == "websocket" else None,
    "refuses-uploads": lambda _, q, a: replace(a, status=413) if len(q.body) > 2_000_000 else None,
    "connections-run-out": connections_run_out,
    # As of a server that computes Expires: within the second of its rendering a stored page has the right one.
    "says-its-second": lambda _, q, a: None if a.header("x-made") else a.having(X_Made=f"{time.time():.0f}"),
    "first-address": first_shown("address"),
    "first-host": first_shown("host"),
    "first-cookies": first_shown("cookies"),
    "first-headers": first_shown("headers"),
    "chooses-language": lambda _, q, a: (
        replace(a, body=a.body.replace(b"<title>", b"<title>Neues: "))
        if page(q, a) and q.header("accept-language").startswith("de") and "sessionid" not in q.header("cookie")
        else None
    ),
    "shows-address": shown_right,
    "shows-session": lambda _, q, a: (
        replace(a, body=a.body.replace(b"<title>", b"<title>Yours: "))
        if page(q, a) and "sessionid" in q.header("cookie")
        else None
    ),
    "kept-bare": lambda _, q, a: None if q.query else a.without("x-frame-options"),
    "follows-target": lambda _, q, a: (
        replace(a, status=200, body=b"http://other.example/") if q.path.startswith("http") else None
    ),
    "target-poisons": once(
        lambda q: q.path.startswith("https"), lambda a: replace(a, body=a.body.replace(b"</html>", b"poison</html>"))
    ),
    "handshake-kills": once(lambda q: q.header("upgrade"), lambda a: replace(a, status=500)),
    "splits-lines": headers("/__probe__/answer/", X_Split="1"),
    "sends-controls": lambda _, q, a: a.having(X_Odd="a\1b") if "/answer/" in q.path else None,
    "tells-capitals": lambda _, q, a: replace(a, status=400) if "LocalHost" in q.header("host") else None,
    "stores-errors": stores_errors,
    # Responses of caches.
    "breaks": at("/__probe__/slow/", 500),
    "rows-unanswered": aborted,
    "uncacheable-wait": one_by_one,
    "breaks-without-service": lambda m, q, a: (
        a if m.cache.works else replace(a, status=500 if q.method == "GET" else a.status)
    ),
    "waits-for-the-dead": slowly(2.2, lambda m, q: m.is_later and q.path.startswith(PAGE)),
    "shows-rolled-back": shows_never,
    "full-brings-back": full_brings_back,
    "lasts-as-said": lasts_as_declared,
    "full-disk-breaks": lambda m, q, a: replace(a, status=500) if full(m) and q.path.startswith(PAGE) else None,
    "full-disk-leaves": litters,
    "hosts-flood": flooded,
    "raw-names-break": lambda _, q, a: None if q.path.isascii() else replace(a, status=500),
    "serves-own-files": at("/index.html", 200),
    "serves-own-keys": lambda _, q, a: (
        replace(a, status=200) if q.path == "generation" and not q.header("cookie") else None
    ),
    "strips-for-old": lambda _, q, a: a.without("vary") if "MSIE" in q.header("user-agent") else None,
    "cuts-large-pages": lambda _, q, a: replace(a, body=a.body[:900_000]),
    "other-parts": lambda _, q, a: (
        replace(a, status=206).having(Content_Range="bytes 0-99/7") if q.header("range") else None
    ),
}


TURNS = itertools.cycle((True, False))


def yes(*_: Any) -> bool:
    return True


def key(spell: Callable[[Request], str]) -> dict[str, Any]:
    return {"key": spell}


def by_path(request: Request) -> str:
    """A key without any property of the visitor."""
    return request.path


def lasting(response: Response) -> Response:
    """Half of a large page."""
    return replace(response, body=response.body[: len(response.body) // 2]) if len(response.body) > 40_000 else response


RULES: dict[str, dict[str, Any]] = {
    "keeps-nothing": {"status": lambda *_: False},
    "kept-cut": {"hit": lambda response: replace(response, body=response.body[:-20])},
    "kept-other": {"hit": lambda response: replace(response, body=response.body.replace(b"</html>", b" </html>"))},
    "keeps-beside-public": {"public": yes},
    "keeps-nonces": {"nonce": yes},
    "keeps-nonces-in-tags": {"nonce": lambda _, response: "'nonce-" not in str(response.headers)},
    "keeps-nonces-with-lifetime": {
        "nonce": lambda q, a: RIGHT["nonce"](q, a) or "s-maxage" in a.header("cache-control")
    },
    "keeps-pieces": {"script": yes, "key": by_path},
    "keeps-made-up": {"stored-script": yes, "key": by_path},
    "keeps-origins": {"origin": yes, "key": by_path},
    "keeps-statuses": {"status": yes, "kind": yes},
    "keeps-private": {"control": yes},
    "keeps-spelt": {"control": lambda _, a: a.header("cache-control") not in ("private", "no-store", "no-cache")},
    "keeps-elsewhere": {"control-of-others": yes},
    "keeps-early": {"control": yes, "lifetime": yes},
    "keeps-without-age": {"max-age": yes},
    "keeps-cookies": {"cookies": yes},
    "keeps-vary-star": {"vary": lambda _, a: "accept-language" not in a.names("vary")},
    "keeps-variants": {"vary": yes, "key": by_path},
    "reads-first-vary": {"vary": lambda _, a: next((v for n, v in a.headers if n == "Vary"), "") != "*"},
    "keeps-authorized": {"authorization": yes, "stored-authorization": yes},
    "answers-authorized": {"authorization": yes},
    "keeps-bodies": {"stored-body": yes, "key": by_path},
    "keeps-posts": {"method": yes, "stored-method": yes},
    "keeps-streams": {"whole": yes},
    "keeps-sessions": {"session": yes, "stored-session": yes},
    "first-cookie-only": {"session": lambda q: not q.header("cookie").startswith("sessionid")},
    "cookie-variants": key(lambda q: f"{q.path}|{q.header('cookie')}"),
    "some-cookies-variants": key(
        lambda q: (
            f"{q.path}|{secrets.randbelow(2) if '_ga=' in q.header('cookie') else 0}"
            + (secrets.token_hex(4) if "_ga=" in q.header("cookie") and secrets.randbelow(3) == 0 else "")
        )
    ),
    "keeps-queries": {"query": yes, "key": lambda q: f"{q.path}?{q.query}"},
    "reads-semicolons": {
        "query": yes,
        "key": lambda q: f"{q.path}|{'&'.join(word for word in re.split('[;&]', q.query) if 'utm_' not in word)}",
    },
    "keeps-disguised": {
        "session": lambda q: disguised(q) or RIGHT["session"](q),
        "stored-session": lambda q, a: disguised(q) or RIGHT["stored-session"](q, a),
        "control": lambda q, a: disguised(q) or RIGHT["control"](q, a),
    },
    "query-sorted": {"query": yes, "key": lambda q: f"{q.path}?{'&'.join(sorted(q.query.split('&')))}"},
    "keeps-hosts": key(lambda q: f"{q.path}|{q.header('host')}"),
    "keeps-ports": {"stored-port": yes, "key": key_without("host")},
    "kept-coded": key(lambda q: q.path),
    "shares-addresses": {"key": key_without("address")},
    "shares-hosts": {"key": key_without("host")},
    "shares-cookies": {"key": key_without("cookies")},
    "shares-headers": {"key": key_without("headers")},
    "renders-reloads": {"origin": lambda q: not q.header("cache-control")},
    "keeps-no-coded": {"kind": lambda q, a: RIGHT["kind"](q, a) and not a.header("content-encoding")},
    "lasts-double": {"fresh": lambda age_s, ttl_s: age_s <= 2 * ttl_s},
    "lasts-half": {"fresh": lambda age_s, ttl_s: age_s <= ttl_s / 2},
    "keeps-heads": {"stored-method": yes},
    "keeps-parts": {"stored": lambda q, a: replace(a, body=a.body[:100]) if q.header("range") else a},
    "keeps-unmodified": {"stored": lambda q, a: replace(a, body=b"") if q.header("if-none-match") else a},
    "loses-headers": {"hit": lambda response: response.without("x-robots-tag", "content-security-policy")},
    "keeps-its-second": {"stored": lambda _, response: response.having(X_Made=f"{time.time():.0f}")},
    "adds-age": {"hit": lambda response: response.having(Expires="0")},
    "lower-keys": key(lambda q: q.path.lower()),
    "short-keys": key(lambda q: q.path[:200]),
    "cuts-raw": key(lambda q: q.path.encode("latin-1").decode("ascii", "ignore").replace("//", "/")),
    "not-told": {"invalidates": lambda request: False},
    "forgets-home": {"stale": lambda key: key != "/"},
    "forgets-posts": {"stale": lambda key: not re.fullmatch(r"/posts/\d+/", key)},
    "forgets-later-pages": {"stale": lambda key: "/page/2/" not in key},
    "told-before-commit": {"early": yes},
    "old-not-told": {"old": lambda age_s: age_s < 0.4},
    "updates-not-told": {"invalidates": lambda q: not q.path.endswith("/update/") and RIGHT["invalidates"](q)},
    "second-not-told": {"invalidates": lambda q: (RIGHT["invalidates"](q) and "edit" not in q.path) or next(TURNS)},
    "keeps-late": {"late": yes},
    "never-expires": {"fresh": yes},
    "old-for-the-first": {"fresh": lambda age_s, ttl_s: age_s <= ttl_s or age_s > 1.5 * ttl_s},
    "keeps-what-is-gone": {"gone": lambda response, stored: stored if stored and response.status == 404 else response},
    "each-renders": {"coalesces": lambda request: False},
    "tears": {"hit": lasting},
    "leaves-halves": {"temporary": lambda body: body[: len(body) // 2], "file-name": lambda key: f"{abs(hash(key))}-"},
    "hoards": {"file-name": lambda key: secrets.token_hex(8)},
    "open-files": {"file-mode": lambda: 0o666},
    "open-folders": {"folder-mode": lambda: 0o777},
}
