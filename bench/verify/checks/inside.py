"""What a worker says of itself: which Python it is, who it runs as, and the client as the site sees it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator

from bench.verify.checks.hosts import forged_headers
from bench.verify.outcome import NotAsked
from bench.verify.suite import Context, Mismatch, check

PROBE = "/probe/inside"
CLIENT = "127.0.0.1"
HERE = ("127.0.0.1", "localhost")


def _inside(context: Context, headers: dict[str, str] | None = None) -> dict | Mismatch:
    answer = context.get(PROBE, headers or {})
    if answer.status != 200:
        return Mismatch(f"GET {PROBE}: status 200 (a site started with BENCHAPP_PROBES=1)", f"status {answer.status}")
    return json.loads(answer.body)


@check("interpreter")
def interpreter(context: Context) -> Iterator[Mismatch]:
    """A worker runs the very Python and packages of the virtual environment, and not as root unless asked to."""
    if not context.site.known:
        raise NotAsked("which Python should run it is not known: give --database, if it is this checkout's")
    found = _inside(context)
    if isinstance(found, Mismatch):
        yield found
        return
    own = {"python": sys.version.split()[0], "prefix": sys.prefix, "base_prefix": sys.base_prefix}
    for name, expected in own.items():
        if found[name] != expected:
            yield Mismatch(f"{name} {expected} inside a worker", str(found[name]))
    if not found["django_path"].startswith(sys.prefix):
        yield Mismatch(f"Django of {sys.prefix}", found["django_path"])
    if found["user_id"] == 0 and os.environ.get("BENCH_USER") != "root":
        yield Mismatch("a worker of an ordinary user", "user id 0, root")


@check("client")
def client(context: Context) -> Iterator[Mismatch]:
    """The client's address, the scheme, host and port are what the client used, whatever it claims in headers."""
    target = context.target
    own = {
        "client": CLIENT,
        "scheme": target.scheme,
        "host": target.origin.partition("://")[2],
        "port": str(target.port),
    }
    if target.host not in HERE:
        # Which address the client has there is not known here.
        del own["client"]
    for forged in ({}, *forged_headers(context)):
        how = "".join(f", with {name}: {value}" for name, value in forged.items())
        found = _inside(context, forged)
        if isinstance(found, Mismatch):
            yield found
            return
        for name, expected in own.items():
            if found[name] != expected:
                yield Mismatch(f"{name} {expected} as the site sees it{how}", str(found[name]))
