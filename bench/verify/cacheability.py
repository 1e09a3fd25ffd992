"""Why no cache may share an answer among anonymous visitors, by the name of what stops it; and what a hit has lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from bench.verify.finding import Mismatch
from bench.verify.wire import Answer

# Each in Cache-Control alone keeps a page out of a shared cache.
_UNSHARED = re.compile(r"\b(private|no-store|no-cache|max-age=0|s-maxage=0|must-revalidate)\b", re.I)
# Layers leave the cookies of anonymous visitors out, and store each coding by itself.
SHARED_VARIANTS = {"cookie", "accept-encoding"}


def obstacle(answer: Answer) -> str | None:
    """The status, cookie or header that stops caches from storing the answer; None when nothing does."""
    if answer.status != 200:
        return f"its status is {answer.status}"
    if cookies := answer.all("Set-Cookie"):
        return f"it sets the cookie {', '.join(line.partition('=')[0] for line in cookies)}"
    # First, for what varies by a language often reads a cookie for it, too, which makes it private.
    if varies := _names(answer) - SHARED_VARIANTS:
        return f"it has Vary: {', '.join(sorted(varies))}"
    control = answer.header("Cache-Control") or ""
    if _UNSHARED.search(control):
        return f"its Cache-Control is {control}"
    return None


def different_headers(
    what: str, stored: Answer, rendered: Answer, names: Iterable[str], exact: bool
) -> Iterator[Mismatch]:
    """What a stored page has otherwise than a rendered one.

    Unless it is to be `exact`, it may have Cookie in Vary besides, for a server that looks at the session cookie
    first. It never loses a name of Vary: caches behind it would mix visitors.
    """
    for name in names:
        if _plain(stored.header(name)) == _plain(rendered.header(name)):
            continue
        if name.lower() == "vary" and not exact and _names(stored) == _names(rendered) | {"cookie"}:
            continue
        yield Mismatch(f"{what}: {name}: {rendered.header(name)}", f"{stored.header(name)}")


def _plain(value: str | None) -> str:
    """A header's value without letter case and spaces, which mean nothing."""
    return "".join((value or "").lower().split())


def _names(answer: Answer) -> set[str]:
    """The names in Vary, of all its lines."""
    return {name.strip().lower() for name in ",".join(answer.all("Vary")).split(",")} - {""}
