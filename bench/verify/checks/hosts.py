"""The host, scheme and client address that the site sees."""

from __future__ import annotations

import json
from collections.abc import Iterator

from bench.verify.browser import Browser
from bench.verify.check import check
from bench.verify.checks.pages import redirecting, wrong_location
from bench.verify.context import Context
from bench.verify.finding import Mismatch, NotTried
from bench.verify.site import INSIDE, UNKNOWN_PATH

FOREIGN = "other.example"
OWN_SCHEME_OTHER = {"http": "https", "https": "http"}


@check("unknown-host")
def unknown_host(context: Context) -> Iterator[Mismatch]:
    """An unknown host gets a 400, also for cached pages; the right host still gets its pages after that."""
    if "*" in allowed_hosts(context):
        raise NotTried("its ALLOWED_HOSTS has *: the project answers to any host, see `python -m bench doctor`")
    for path in [*context.site.main_paths, context.site.urls.get("login", UNKNOWN_PATH)]:
        for host in (FOREIGN, f"{FOREIGN}:{context.target.port}", "bad host"):
            if (got := context.get(path, host=host).status) != 400:
                yield Mismatch(f"GET {path} with Host: {host}: status 400", f"status {got}")
    home = context.site.url("home")
    if (got := context.get(home).status) != 200:
        yield Mismatch(f"GET {home} with the right Host after that: status 200", f"status {got}")


@check("no-host")
def no_host(context: Context) -> Iterator[Mismatch]:
    """An HTTP/1.1 request without a Host header gets a 400 (RFC 9112, section 3.2)."""
    home = context.site.url("home")
    got = context.get(home, host=None).status
    if got == 200 and not context.strict:
        raise NotTried("neither a server here nor Django refuses it: it is taken for one to the server's own address")
    if got != 400:
        yield Mismatch(f"GET {home} without a Host header: status 400", f"status {got}")


def forged_headers(context: Context) -> list[dict[str, str]]:
    """Headers with which a client may pretend to be another one, or to have asked another host."""
    scheme = OWN_SCHEME_OTHER[context.target.scheme]
    return [
        {"X-Forwarded-Proto": scheme},
        {"X-Forwarded-Protocol": "ssl"},
        {"X-Forwarded-Ssl": "on"},
        {"X-Forwarded-Scheme": scheme},
        {"X-Scheme": scheme},
        {"Front-End-Https": "on"},
        {"X-Forwarded-Host": FOREIGN},
        {"X-Forwarded-Port": "1"},
        {"X-Forwarded-Server": FOREIGN},
        {"X-Forwarded-For": "203.0.113.7"},
        {"X-Real-IP": "203.0.113.7"},
        {"X-Forwarded-Prefix": "/forged"},
        {"Forwarded": f"for=203.0.113.7;host={FOREIGN};proto={scheme}"},
        {"FrontAddress": "203.0.113.7"},
        {"FrontProto": scheme},
        {"Script-Name": "/forged"},
        {"X-Script-Name": "/forged"},
        {"Path-Info": "/forged/"},
        {"X-Original-URL": "/forged/"},
        {"X-Rewrite-URL": "/forged/"},
        {"X-HTTP-Method-Override": "DELETE"},
        {"Proxy": f"http://{FOREIGN}/"},
    ]


def with_underscores(forged: list[dict[str, str]]) -> list[dict[str, str]]:
    """The same under names with underscores, which CGI cannot tell from dashes."""
    return [{name.replace("-", "_"): value for name, value in each.items()} for each in forged]


def allowed_hosts(context: Context) -> list[str]:
    """The hosts that the site answers to; empty where no probe says them."""
    answer = context.first(INSIDE)
    found: list[str] = json.loads(answer.body).get("allowed_hosts", []) if answer.status == 200 else []
    return found


@check("forged-headers")
def forged_headers_not_believed(context: Context) -> Iterator[Mismatch]:
    """Forged X-Forwarded-* and similar headers change neither a redirect nor the origin that forms need."""
    login = context.site.urls.get("login")
    visitor = Browser(context.target)
    token = (visitor.token(login) if login else None) or ""
    for forged in forged_headers(context):
        what = ", ".join(f"{name}: {value}" for name, value in forged.items())
        for path, _, location in redirecting(context)[:1]:
            yield from wrong_location(context, f"GET {path} with {what}", context.get(path, forged), location)
        if login and token:
            # A form without a password gets the form again, unless the site believes in another origin.
            form = visitor.post(login, {"csrfmiddlewaretoken": token, "username": "forged", "password": ""}, forged)
            if form.status == 403 or (form.status != 200 and context.strict):
                yield Mismatch(f"POST {login} with {what}: status 200", f"status {form.status}")


@check("forged-names")
def forged_names(context: Context) -> Iterator[Mismatch]:
    """A header name with underscores never overwrites the server's own variable of that name."""
    for forged in with_underscores(forged_headers(context)):
        what = ", ".join(f"{name}: {value}" for name, value in forged.items())
        for path, _, location in redirecting(context)[:1]:
            answer = context.get(path, forged)
            if answer.status not in (400, 403):
                yield from wrong_location(context, f"GET {path} with {what}", answer, location)
