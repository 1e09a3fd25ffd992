"""Why no cache may share an answer among anonymous visitors, by the name of what stops it; and what a hit has lost."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Iterator
from email.utils import parsedate_to_datetime

from bench.verify import page_parser
from bench.verify.expect import given
from bench.verify.finding import Mismatch
from bench.verify.wire import Answer

# Each in Cache-Control alone keeps a page out of a shared cache.
_UNSHARED = re.compile(r"\b(private|no-store|no-cache|max-age=0|s-maxage=0|must-revalidate|proxy-revalidate)\b", re.I)
_LIFETIMES = (re.compile(r"\bs-maxage=(\d+)", re.I), re.compile(r"\bmax-age=(\d+)", re.I))
# Layers leave the cookies of anonymous visitors out, store each coding by itself, and pass every request that has one
# of the others (benchapp/caching/cacheability.py).
SHARED_VARIANTS = {"cookie", "accept-encoding", "authorization", "hx-request", "origin", "x-requested-with"}
HTML = "text/html;charset=utf-8"
POLICIES = ("Content-Security-Policy", "Content-Security-Policy-Report-Only")


def obstacle(answer: Answer, time_to_live_s: float = 0) -> str | None:
    """The status, cookie or header that stops caches from storing the answer so long; None when nothing does.

    It is told from the answer alone: the layers have a rule of their own, which this one proves.
    """
    control = answer.header("Cache-Control") or ""
    if answer.status != 200:
        return f"its status is {answer.status}"
    if answer.content_type != HTML:
        return f"its Content-Type is {answer.header('Content-Type')}"
    if cookies := answer.all("Set-Cookie"):
        return f"it sets the cookie {', '.join(line.partition('=')[0] for line in cookies)}"
    # First, for what varies by a language often reads a cookie for it, too, which makes it private.
    if varies := answer.names("Vary") - SHARED_VARIANTS:
        return f"it has Vary: {', '.join(sorted(varies))}"
    if _UNSHARED.search(control):
        return f"its Cache-Control is {control}"
    if _lifetime_s(answer) < time_to_live_s:
        name = "Cache-Control" if "max-age" in control.lower() else "Expires"
        return f"its {name} is {answer.header(name)}, and the layer stores for {time_to_live_s:g} s"
    if any("'nonce-" in (answer.header(name) or "") for name in POLICIES) or page_parser.Page(answer.text).nonces:
        return "it has a nonce, which is new for each visitor"
    return None


def _lifetime_s(answer: Answer) -> float:
    """For how long the answer says that it is fresh."""
    for pattern in _LIFETIMES:
        if found := pattern.search(answer.header("Cache-Control") or ""):
            return int(found[1])
    if (expires := answer.header("Expires")) is None:
        return math.inf
    try:
        return parsedate_to_datetime(expires).timestamp() - time.time()
    except ValueError:
        return 0


def different_headers(stored: Answer, rendered: Answer, names: Iterable[str], exact: bool) -> Iterator[Mismatch]:
    """What a stored page has otherwise than a rendered one.

    Unless it is to be `exact`, it may have Cookie in Vary besides, for a server that looks at the session cookie
    first. It never loses a name of Vary: caches behind it would mix visitors.
    """
    for name in names:
        if _plain(stored.header(name)) == _plain(rendered.header(name)):
            continue
        if name.lower() == "vary" and not exact and stored.names("Vary") == rendered.names("Vary") | {"cookie"}:
            continue
        yield stored.wrong(
            f"as a rendered one has it, {given(rendered, name)}", given(stored, name), f"{stored.sent}, a hit"
        )


def _plain(value: str | None) -> str:
    """A header's value without letter case and spaces, which mean nothing."""
    return "".join((value or "").lower().split())
