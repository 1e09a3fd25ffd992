"""How soon a page shows the write that a project describes: a command that changes one public page."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator

from bench.project.description import FILE
from bench.verify.context import Context
from bench.verify.expected import as_in_process
from bench.verify.finding import Figure, Finding, Mismatch, NotTried

PAUSE_S = 0.05
# Requests before the write, so that a layer caches the page as it is.
WARM = 3


def becomes_fresh(context: Context, bound_s: float) -> Iterator[Finding]:
    """Run the described command, and see its page change within so many seconds, to what is rendered in process."""
    write, site = context.site.description.write, context.site
    if write is None:
        raise NotTried(f"the project describes no write: [tool.benchapp.write] in its {FILE}")
    site.require_writes()
    before = site.rendered_now(write.page)[write.page]
    for _ in range(WARM):
        context.get(write.page)
    site.run_write(shlex.split(write.command), context.env)
    written = time.monotonic()
    while before.difference(as_in_process(context.get(write.page).text, context.target)) is None:
        if time.monotonic() - written > bound_s:
            break
        time.sleep(PAUSE_S)
    fresh_s = time.monotonic() - written
    after = site.rendered_now(write.page)[write.page]
    if after.same(before):
        raise NotTried(f"`manage.py {write.command}` changes nothing on {write.page}: correct write in its {FILE}")
    if wrong := after.difference(as_in_process(context.get(write.page).text, context.target)):
        yield Mismatch(f"GET {write.page} {bound_s:g} s after the described write: {wrong[0]}", wrong[1])
    else:
        yield Figure("fresh_after_write_ms", round(fresh_s * 1000))
