"""Many wrong passwords for one account."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from bench.verify.browser import Browser
from bench.verify.check import AFTER, check
from bench.verify.context import Context
from bench.verify.finding import Figure, Finding, Mismatch, NotTried
from bench.verify.site import Account

MAX_ATTEMPTS = 20
TOO_MANY = 429


@check("login-limit", stage=AFTER, thorough=True)
def login_limit(context: Context) -> Iterator[Finding]:
    """After 20 wrong passwords for one account a login is refused with 429 and Retry-After, the form itself is not."""
    path = context.site.url("login")
    context.site.require_writes()
    visitor = Browser(context.target)
    nobody = Account(f"nobody-{secrets.token_hex(8)}", "wrong")
    for attempt in range(MAX_ATTEMPTS):
        answer = visitor.log_in(path, nobody)
        if answer.status == TOO_MANY:
            yield Figure("login_failures_allowed", attempt)
            if answer.header("Retry-After") is None:
                yield Mismatch(f"POST {path}, status 429: Retry-After", "none")
            break
        if answer.status != 200:
            yield Mismatch(f"POST {path} with a wrong password: status 200 or 429", f"status {answer.status}")
            return
    else:
        if not context.strict:
            raise NotTried(f"the project looks at {MAX_ATTEMPTS} wrong passwords for an account: it has no limit")
        yield Mismatch(f"POST {path} with {MAX_ATTEMPTS} wrong passwords: status 429", f"status {answer.status}")
    if (status := visitor.get(path).status) != 200:
        yield Mismatch(f"GET {path} after that: status 200", f"status {status}")
