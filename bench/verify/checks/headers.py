"""Requests with odd headers: each gets its page or is refused, and no worker dies of it."""

from __future__ import annotations

from collections.abc import Iterator

from bench.verify.browser import SESSION_COOKIE
from bench.verify.check import check
from bench.verify.context import Context
from bench.verify.finding import Mismatch

# Values of the session cookie that the site never gave out: NUL, which PostgreSQL refuses in a text, bytes that are no
# UTF-8, a lone escape, one far too long.
ODD_SESSIONS = (r'"abcdefgh\000"', "abcdefgh\udcff", r'"abcdefgh\3"', "a" * 4000, "abcdefgh'--")


@check("odd-cookies")
def odd_cookies(context: Context) -> Iterator[Mismatch]:
    """A session cookie of any other shape than the site's own is no session: the page, or a 400."""
    for path in dict.fromkeys(context.site.url(*kinds) for kinds in (("home",), ("post", "posts"), ("login",))):
        for value in ODD_SESSIONS:
            got = context.get(path, {"Cookie": f"{SESSION_COOKIE}={value}"}).status
            if got not in (200, 400):
                yield Mismatch(f"GET {path} with {SESSION_COOKIE}={value[:40]!a}: status 200 or 400", f"status {got}")
