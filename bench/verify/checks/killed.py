"""Workers that are killed: while they hold a render lock, and in the middle of a body."""

from __future__ import annotations

from collections.abc import Iterator

from bench.verify.check import check
from bench.verify.checks.files import judge_large
from bench.verify.checks.freshness import Asked, Slow
from bench.verify.context import Context
from bench.verify.finding import Figure, Finding, Mismatch, NotTried
from bench.verify.hits import new_path
from bench.verify.layer_facts import clone, forget_clones, layers_of
from bench.verify.wire import TooLate
from bench.verify.workers import NOT_BACK, is_back, must_kill_application, seconds_until
from bench.verify.writer import Row, Writer, new_rows, require_rows

# How many clients wait for one rendering when its worker is killed.
WAITING = 60
# How much longer than the servers need to start: the page that all wait for is rendered anew, in less than a second.
RENDERED_ANEW_S = 3.0
CODINGS = ("identity", "gzip")
# The site may answer with one worker at first; then nobody can ask how far that one is, for half a second each time.
ATTEMPTS = 24
AT_ONCE = "the application server sends a body only when it has all of it"
TOO_LATE = f"in {ATTEMPTS} attempts no worker was killed before it had answered"


@check("render-lock-holder-killed", group="stampede", thorough=True)
def holder_killed(context: Context) -> Iterator[Finding]:
    """All workers are killed while 60 clients wait for one rendering: another page is answered within three times the
    servers' start, and 3 s.

    It asks a clone of the deployment.
    """
    if not any(layer.coalesces for layer in layers_of(context)):
        raise NotTried("no layer here coalesces requests")
    require_rows(context)
    context = clone(context, {})
    assert context.running is not None
    # All workers start at once, beside the clients: on a busy machine that takes as long as several starts.
    bound_s = 3 * context.running.ready_s + RENDERED_ANEW_S
    with new_rows(context) as (writer, (row,)):
        for _ in range(ATTEMPTS):
            with Slow(context, writer, row) as slow:
                waiting = [Asked(context, slow.path) for _ in range(WAITING)]
                # Killed once only: some masters wait before they replace workers that die one soon after another.
                if in_time := slow.under_way:
                    must_kill_application(context)
                    took_s = seconds_until(context, new_path())
            for asked in waiting:
                asked.join()
            if in_time:
                break
        else:
            raise NotTried(TOO_LATE)
    if took_s is None:
        raise _not_back(context)
    yield Figure("after_kill_ms", round(took_s * 1000))
    if took_s > bound_s:
        expected = f"another page within {bound_s:.1f} s after all workers are killed, with {WAITING} clients waiting"
        yield Mismatch(expected, f"{took_s:.1f} s")


@check("killed-mid-body", group="files", thorough=True)
def killed_mid_body(context: Context) -> Iterator[Finding]:
    """Workers are killed in the middle of a body: the client sees that it broke off, and no part of it is cached.

    It asks a clone of the deployment.
    """
    require_rows(context)
    context = clone(context, {})
    with new_rows(context) as (writer, (row,)):
        for coding in CODINGS:
            yield from _killed_mid_body(context, writer, row, {"Accept-Encoding": coding})


def _killed_mid_body(context: Context, writer: Writer, row: Row, headers: dict[str, str]) -> Iterator[Finding]:
    reached = False
    for _ in range(ATTEMPTS):
        with Slow(context, writer, row, "halting", headers) as slow:
            reached = reached or slow.reached
            if not slow.under_way:
                continue
            must_kill_application(context)
            if not is_back(context):
                raise _not_back(context)
        (asked,) = slow.asked
        if isinstance(asked.error, TooLate):
            yield Mismatch("a connection that closes when the body breaks off", str(asked.error))
        # A server in between may have sent nothing yet, and answers with an error of its own.
        if asked.answer and asked.answer.status < 500 and (wrong := judge_large(slow.path, asked.answer)):
            yield wrong
        try:
            again = context.get(slow.path, headers)
        except ConnectionRefusedError:
            # Some masters end with their workers, but not at once.
            raise _not_back(context) from None
        if wrong := judge_large(slow.path, again):
            yield Mismatch(f"{wrong.expected}, asked again", wrong.got)
        return
    yield NotTried(TOO_LATE if reached else AT_ONCE)


def _not_back(context: Context) -> NotTried:
    """The reason; the next check gets another clone."""
    forget_clones(context)
    return NotTried(NOT_BACK)
