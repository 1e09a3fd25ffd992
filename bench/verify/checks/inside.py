"""Look inside a worker: its Python, its user, and the client as the site sees it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from bench.verify.check import check
from bench.verify.checks.hosts import forged_headers
from bench.verify.context import Context
from bench.verify.finding import Finding, Mismatch, NotTried
from bench.verify.site import INSIDE

CLIENT = "127.0.0.1"
HERE = ("127.0.0.1", "localhost")
# A strict site has a middleware that takes the address from a header.
NO_ADDRESS = (
    "the site sees no address of a client: a Unix socket has none, and the project reads no header of the proxy"
)


def _inside(context: Context, headers: dict[str, str] | None = None) -> dict[str, Any] | Mismatch:
    answer = context.get(INSIDE, headers or {})
    if answer.status != 200:
        return Mismatch(f"GET {INSIDE}: status 200 (a site with the app `bench.inside`)", f"status {answer.status}")
    found: dict[str, Any] = json.loads(answer.body)
    return found


@check("interpreter")
def interpreter(context: Context) -> Iterator[Mismatch]:
    """A worker runs the Python and the Django of the project's environment, and not as root unless asked to."""
    if not context.site.has_database:
        raise NotTried("its Python is not known: give --database, if the site runs from this checkout")
    found = _inside(context)
    if isinstance(found, Mismatch):
        yield found
        return
    own = context.site.interpreter
    for name, expected in own.items():
        if found[name] != expected:
            yield Mismatch(f"{name} {expected} inside a worker", str(found[name]))
    if found["user_id"] == 0 and os.environ.get("BENCH_USER") != "root":
        yield Mismatch("a worker of an ordinary user", "user id 0, root")


@check("client")
def client(context: Context) -> Iterator[Finding]:
    """The site sees the client's real address, scheme, host and port, whatever the client claims in headers."""
    target = context.target
    own = {
        "client": CLIENT,
        "scheme": target.scheme,
        "host": target.origin.partition("://")[2],
        "port": str(target.port),
    }
    if not context.strict:
        # Django makes addresses of Host alone: few projects have a middleware for the port behind a front.
        del own["port"]
    if target.host not in HERE:
        # The client's address as seen from there is not known here.
        del own["client"]
    for forged in ({}, *forged_headers(context)):
        how = "".join(f", with {name}: {value}" for name, value in forged.items())
        found = _inside(context, forged)
        if isinstance(found, Mismatch):
            yield found
            return
        if not found["client"] and not context.strict and own.pop("client", ""):
            yield NotTried(NO_ADDRESS)
        for name, expected in own.items():
            if found[name] != expected:
                yield Mismatch(f"{name} {expected} as the site sees it{how}", str(found[name]))
