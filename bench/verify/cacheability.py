"""Why no cache may share an answer among anonymous visitors, by the name of what stops it."""

from __future__ import annotations

import re

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
    control = answer.header("Cache-Control") or ""
    if _UNSHARED.search(control):
        return f"its Cache-Control is {control}"
    varies = {name.strip().lower() for name in (answer.header("Vary") or "").split(",")} - SHARED_VARIANTS - {""}
    if varies:
        return f"it has Vary: {', '.join(sorted(varies))}"
    return None
