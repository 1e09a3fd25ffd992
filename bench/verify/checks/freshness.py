"""Freshness: how soon a write shows on every page, and whether stale pages come back."""

from __future__ import annotations

import shlex
import statistics
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from bench.serve.project.description import FILE
from bench.verify import hits, page_parser, rows
from bench.verify.check import AFTER
from bench.verify.check import check as any_check
from bench.verify.context import Context
from bench.verify.crowd import GATE_S, NO_RACE, Clients, after_race, race
from bench.verify.expect import has
from bench.verify.in_process import ExpectedPage, as_in_process
from bench.verify.mismatch import Figure, Finding, Mismatch, NotTried
from bench.verify.rows import PendingPage, Row, Writer
from bench.verify.site import MAX_PAGES
from bench.verify.wire import PageResponse

# The time to live of the clone, if nothing else ends a stale page.
SHORT_TTL_S = 2
# Time to live of the clone whose pages are half as old at the time of a write.
OLD_TTL_S = 8
# Visitors who send requests while a command writes.
READERS = 2
ONE_LEFT = "1 comment<"
# Number of writes followed by a visitor, and of requests after each.
OWN_WRITES, READS = 8, 3
# Requests before the described write, so that a layer caches the page.
WARM = 3

# Pages are requested before these transactions end, too: a cache purged before the commit stores the old pages.
IN_TRANSACTION = ROLL_BACK, COMMIT_LATE = "roll-back", "commit-late"
# Twice each, because a cache may forget the place of a page after its first invalidation.
WRITES = ("comment", "edit", "edit", "update", "update", ROLL_BACK, COMMIT_LATE, "delete")
AUTHOR_WRITES = ("rename", "remove")
UNSIGNALLED = "update-silently"
TOLD_OF_WRITES = "told-of-writes"
# Writes in the database's own shell. A page that becomes 404 gives a cache nothing to store in place of the stale one.
SILENT_WRITES = (UNSIGNALLED, "delete-silently", "remove-silently")

check = partial(any_check, group="freshness", is_exclusive=True)


def require_invalidation(context: Context, described: bool = False) -> None:
    """Raise NotTried if stale pages only expire; `described`: the described write is enough."""
    if not context.site.description.invalidates:
        raise NotTried(f"the project names no stale pages ([tool.benchapp.stale] in its {FILE}): see time-to-live")
    if not context.site.has_rows and not described:
        raise NotTried("it writes rows, and the project has no probe that does: see told-of-commands")
    if names := expiring(context):
        raise NotTried(f"no write invalidates {names}: see time-to-live")


def expiring(context: Context) -> str:
    """Names of the layers without invalidation; empty if declared, so that `--check` shows the failure."""
    if TOLD_OF_WRITES in context.declared:
        return ""
    return ", ".join(layer.name for layer in hits.without_invalidation(context))


@check(TOLD_OF_WRITES)
def writes(context: Context) -> Iterator[Finding]:
    """A comment, an edit, a bulk update and a deletion invalidate every page that shows the row, and a new row
    invalidates the other pages of its list; no page ever shows a write after a rollback."""
    yield from _invalidated_by(context, WRITES)
    yield from _moved_on(context)


@check("told-of-authors", thorough=True)
def authors(context: Context) -> Iterator[Finding]:
    """An author's new name invalidates every page with the name, posts too; deleting the author removes the author's
    posts and comments from every page."""
    yield from _invalidated_by(context, AUTHOR_WRITES)


@check("told-of-commands", thorough=True)
def commands(context: Context) -> Iterator[Finding]:
    """A write by a management command invalidates every page that shows the row, while visitors request them; without
    probes for rows, the described write does, if the project names its pages."""
    require_invalidation(context, described=True)
    _ = context.own
    if not context.site.has_rows:
        yield from becomes_fresh(context, rows.INVALIDATED_S)
        return
    with rows.new_rows(context) as (writer, (row,)):
        paths = [right.path for right in rows.expected_pages(context, row, None)]
        with Clients(context, paths, READERS, pause_s=rows.PAUSE_S):
            # A cache in front is purged by the first write, and must not get the page from before the second one.
            written = writer.write(row, "edit")
            new = Row(**context.site.write_row(written.author, "edit", context.env))
            yield from rows.soon_right(context, new, written, "a command's edit")


@check("told-of-deploys", hits.require_visible_hits, hits.require_cacheable, thorough=True)
def deploys(context: Context) -> Iterator[Finding]:
    """After a deploy runs `invalidatepages`, no older page is served."""
    if names := expiring(context):
        raise NotTried(f"no command invalidates {names}: its pages expire")
    _ = context.own
    paths = [hits.new_path(), *context.site.main_paths]
    before: list[PageResponse] = []
    for path in paths:
        before += hits.repeat(context, path, WARM)
    context.site.run_write(["invalidatepages"], context.env)
    deadline = time.monotonic() + rows.INVALIDATED_S
    for path in paths:
        response = rows.until(context, path, lambda response: not hits.is_hit(response, before), deadline)
        if hits.is_hit(response, before):
            yield response.wrong("a new rendering after invalidatepages", "the page from before it")


@check("read-your-write", require_invalidation, thorough=True)
def read_your_write(context: Context) -> Iterator[Finding]:
    """A visitor sees a write in the next request, and nobody who has seen it gets the old page again."""
    requests = 0
    with rows.new_rows(context) as (writer, (row,)):
        for _ in range(OWN_WRITES):
            rights = rows.expected_pages(context, row, None)
            rows.warm(context, [*rights, *rights])
            row, old = writer.write(row, "edit"), row
            for number in range(READS):
                for right in rows.expected_pages(context, row, old):
                    requests += 1
                    if not right.met(response := context.get(right.path)):
                        yield right.wrong(response, f"read {number + 1} after an edit")
    yield Figure("reads_after_writes", requests)


def _invalidated_by(context: Context, kinds: Iterable[str]) -> Iterator[Finding]:
    """Make these writes to a row, one after another, and expect each page to become right."""
    require_invalidation(context)
    with rows.new_rows(context) as (writer, (row,)):
        rows.warm(context, rows.expected_pages(context, row, None))
        waited: list[PendingPage] = []
        for what in kinds:
            if what in IN_TRANSACTION:
                new, wrong = _while_open(context, writer, row, what)
                yield from wrong
            else:
                new = writer.write(row, what)
            waited += rows.settle(context, rows.waiting(context, new, row, rows.INVALIDATED_S, what))
            row = new
        yield from _findings(waited)


@any_check("rows-counted", rows.require_rows, stage=AFTER, is_exclusive=True, thorough=True)
def rows_counted(context: Context) -> Iterator[Finding]:
    """Pages count rows as the database does: after a new row, a moved one and a deleted one."""
    home = context.site.url("home")
    with rows.new_rows(context, 2) as (writer, (row, other)):
        for what in ("comment", "move", "remove"):
            post = row.post_page or home
            row = writer.write(row, what)
            totals = writer.write(other, "count").totals
            yield from context.expect(home, has(totals), headers=context.bypass, when=f"after {what}")
            if what == "move":
                # Of two comments one is left.
                yield from context.expect(post, has(ONE_LEFT), headers=context.bypass, when=f"after {what}")


@check("told-of-old-pages", require_invalidation, thorough=True)
def old_pages(context: Context) -> Iterator[Finding]:
    """A write also invalidates pages cached half a time to live ago: a cache may list pages by time.

    A clone of the deployment has a time to live of 8 s.
    """
    context = context.clone({"cache_seconds": OLD_TTL_S})
    # In one of two such halves a new time to live begins.
    for _ in range(2):
        yield from _moved_on(context, OLD_TTL_S / 2)


def _moved_on(context: Context, after_s: float = 0) -> Iterator[Finding]:
    """Expect the second page of a list, cached so long ago, to list other rows after a new row."""
    path = f"{context.site.url('section')}page/2/"

    def links(response: PageResponse) -> list[str]:
        return page_parser.ParsedPage(response.text).links

    before = hits.repeat(context, path, WARM)[-1]
    time.sleep(after_s)
    with rows.new_rows(context):
        deadline = time.monotonic() + rows.INVALIDATED_S
        now = links(context.get(path, context.bypass))
        response = rows.until(context, path, lambda response: links(response) == now, deadline)
    if before.status == 200 and links(response) != now:
        yield response.wrong("the rows that a new one moved there", "those from before it", f"GET {path} after a write")


def _while_open(context: Context, writer: Writer, row: Row, what: str) -> tuple[Row, list[Mismatch]]:
    """Write, and request all pages during the transaction and after it; returns the row and the mismatches.

    The gate may respond late, from the very worker that is writing: then pages are requested only after the
    transaction.
    """
    paths = [right.path for right in rows.expected_pages(context, row, None)]
    writer.gate(row, "close")
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(writer.write, row, what)
        deadline = time.monotonic() + GATE_S
        while not writing.done() and not writer.gate(row, "look") and time.monotonic() < deadline:
            time.sleep(rows.PAUSE_S)
        responses = [context.get(path) for path in paths]
        writer.gate(row, "open")
        row = writing.result()
    responses += [context.get(path) for path in paths]
    wrong: list[Mismatch] = []
    for response in responses:
        shown = [word for word in row.never if word in response.text]
        wrong += [response.wrong("nothing of a rolled-back write", word) for word in shown]
    return row, wrong


@check("slow-rendering", require_invalidation)
def slow_rendering(context: Context) -> Iterator[Finding]:
    """A rendering that began before a write and ends after it is neither cached nor sent to later requests."""
    # Once without other clients, once with one: that client must get the new page, and may replace the old one.
    with rows.new_rows(context, 2) as (writer, new_rows):
        for row, others in zip(new_rows, (0, 1), strict=True):
            raced = race(context, writer, row, "edit", others)
            if raced is None:
                yield NotTried(NO_RACE)
                return
            right, late = raced
            for response in late:
                if not right.met(response):
                    yield right.wrong(response, "requested after a write during an older rendering")
            yield from rows.wrong_pages(rows.settle(context, [after_race(right, rows.INVALIDATED_S)]))


@check("time-to-live", thorough=True)
def time_to_live(context: Context) -> Iterator[Finding]:
    """No page is older than the time to live, with and without invalidation, whatever is written meanwhile. Pages of
    rows deleted without a signal become 404, and pages without requests expire too.

    A clone of the deployment has a time to live of 2 s.
    """
    bound_s = SHORT_TTL_S * len(context.layers) + rows.SLACK_S
    if names := ", ".join(layer.name for layer in hits.in_its_code(context)):
        raise NotTried(f"how long {names} stores something is up to the project's own code")
    invalidates = not hits.without_invalidation(context)
    context = context.clone({"cache_seconds": SHORT_TTL_S})
    if not context.site.has_rows:
        # The write of a process whose layers know of no stale pages.
        yield from becomes_fresh(replace(context, env={**context.env, "BENCHAPP_STALE": "{}"}), bound_s)
        return
    # Authors last: the home page names only the newest six.
    kinds, raced_write = tuple(dict.fromkeys((*WRITES, *AUTHOR_WRITES))), "edit"
    if invalidates:
        kinds, raced_write = SILENT_WRITES, UNSIGNALLED
    with rows.new_rows(context, len(kinds) + 2) as (writer, [untouched, *written_rows, raced]):
        for row in written_rows:
            rows.warm(context, rows.expected_pages(context, row, None))
        waited: list[PendingPage] = []
        raced_page = race(context, writer, raced, raced_write)
        for what, row in zip(kinds, written_rows, strict=True):
            waited += rows.waiting(context, writer.write(row, what), row, bound_s, what)
        if raced_page:
            waited.append(after_race(raced_page[0], bound_s))
        # The home page counts all rows, so it must show the totals after the last write.
        last = writer.write(raced, "look").totals
        for item in waited:
            if item.right.path == context.site.url("home"):
                item.right = replace(item.right, wanted=(last, *item.right.wanted[1:]))
        rows.settle(context, waited, stale_until_expired=True)
        yield from _first_responses(context, writer, untouched, bound_s)
        yield Figure("time_to_live_s", SHORT_TTL_S)
        yield from _findings(waited, "old")


def _first_responses(context: Context, writer: Writer, row: Row, bound_s: float) -> Iterator[Finding]:
    """Expect fresh pages in the first responses since a write: a cache may serve an old page once."""
    rows.warm(context, rows.expected_pages(context, row, None))
    rights = rows.expected_pages(context, writer.write(row, UNSIGNALLED), row)
    time.sleep(bound_s)
    for right in rights:
        if right.path in (row.author_page, row.post_page) and not right.met(response := context.get(right.path)):
            yield right.wrong(response, f"{bound_s:g} s after a write, by the first visitor since")


def _findings(waited: list[PendingPage], name: str = "fresh") -> Iterator[Finding]:
    yield from rows.wrong_pages(waited)
    taken = [item.done_s * 1000 for item in waited if item.done_s is not None]
    if taken:
        yield Figure(f"{name}_p50_ms", round(statistics.median(taken)))
        yield Figure(f"{name}_max_ms", round(max(taken)))


def becomes_fresh(context: Context, bound_s: float) -> Iterator[Finding]:
    """Run the described command, and expect its page to equal a new rendering in process within so many seconds."""
    write, site = context.site.description.write, context.site
    if write is None:
        raise NotTried(f"the project describes no write: [tool.benchapp.write] in its {FILE}")
    site.require_writes()
    versions = _versions(context, write.page)
    before = site.rendered_now(*dict.fromkeys([*versions, *_linked(context, write.page)]))
    for path in before:
        hits.repeat(context, path, WARM)
    site.run_write(shlex.split(write.command), context.env)
    written = time.monotonic()

    def is_new(response: PageResponse) -> bool:
        return before[write.page].difference(as_in_process(response.text, context.target)) is not None

    rows.until(context, write.page, is_new, written + bound_s)
    fresh_s = time.monotonic() - written
    after = site.rendered_now(*before)
    if after[write.page].same(before[write.page]):
        raise NotTried(f"`manage.py {write.command}` changes nothing on {write.page}: correct write in its {FILE}")
    stale: list[Finding] = []
    for path, page in after.items():
        # Of linked pages only a missing one: the old address of a renamed row.
        if not page.same(before[path]) and (path in versions or page.status != before[path].status):
            stale += _stale(context, path, page, written + bound_s)
    yield from stale
    if not stale:
        yield Figure("fresh_after_write_ms", round(fresh_s * 1000))


def _versions(context: Context, page: str) -> list[str]:
    """The page in each language of the site, if paths begin with a language."""
    languages = hits.worker_facts(context).get("languages", [])
    first, _, rest = page.lstrip("/").partition("/")
    if first not in languages:
        return [page]
    return list(dict.fromkeys([page, *(f"/{code}/{rest}" for code in languages)]))


def _linked(context: Context, page: str) -> list[str]:
    """The pages of the site linked from this one."""
    links = page_parser.ParsedPage(context.get(page, context.bypass).text, page).links
    files = tuple(filter(None, (context.site.static_url, context.site.media_url)))
    near = [link for link in links if link.startswith("/") and not link.startswith(files)]
    return near[:MAX_PAGES]


def _stale(context: Context, path: str, right: ExpectedPage, until: float) -> Iterator[Finding]:
    """Expect the page to become the one rendered in process, in time."""

    def wrong(response: PageResponse) -> tuple[str, str] | None:
        difference = None
        if right.status == 200:
            difference = right.difference(as_in_process(response.text, context.target))
        if response.status == right.status:
            return difference
        return difference or ("another status", "the text from before")

    response = rows.until(context, path, lambda response: wrong(response) is None, until)
    if mismatch := wrong(response):
        expected, got = mismatch
        words = f"GET {path} after the described write"
        yield response.wrong(f"status {right.status}, {expected}", f"status {response.status}, {got}", words)
