"""Several web servers share one cache: what one stores the others answer, and a write at one reaches all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bench.verify.check import check
from bench.verify.checks.freshness import INVALIDATED_S, settle, waiting, warm, wrong_pages
from bench.verify.context import Context
from bench.verify.finding import Finding, Mismatch, NotTried
from bench.verify.hits import is_hit, new_path, require_cacheable, until_hit
from bench.verify.layer_facts import PAGES, caches_pages, layers_of, without_invalidation
from bench.verify.row_pages import expected_pages
from bench.verify.wire import Target
from bench.verify.writer import new_rows

NEEDS_OWN = "it needs a second deployment: verify a STACK instead of a --target"


@check("shared-cache", group="caching", thorough=True)
def shared_cache(context: Context) -> Iterator[Finding]:
    """Two web servers share one cache: what one has stored the other answers, and a write at one reaches both."""
    if context.running is None:
        raise NotTried(NEEDS_OWN)
    if not context.running.case.services:
        raise NotTried("its layers cache in no service, which is what two web servers could share")
    if not caches_pages(context):
        raise NotTried("it caches parts of pages, and no answer says where its parts are from")
    if own := [layer.name for layer in layers_of(context) if layer.caches == PAGES and not layer.services]:
        raise NotTried(f"each web server has {' and '.join(own)} of its own, which answers first")
    require_cacheable(context)
    with context.running.beside() as second:
        other = replace(
            context, target=Target.parse(second.url), running=second, env=second.env, pages={}, seen=set(), browsers={}
        )
        yield from _answered_by(context, other)
        if context.site.has_rows and not without_invalidation(context):
            yield from _reached(context, other)


def _answered_by(context: Context, other: Context) -> Iterator[Mismatch]:
    """What is wrong unless a page that one server stored is a hit at the other, for visitors who ask the same host."""
    path = new_path()
    stored = until_hit(context, path)
    if stored is None:
        yield Mismatch(f"GET {path} at the first server: a hit in the end", "rendered each time")
        return
    answer = other.get(path, host=context.target.netloc)
    if not is_hit(answer, [stored]) or answer.content != stored.content:
        expected = f"GET {path} at the second server: the page that the first stored"
        yield Mismatch(expected, f"status {answer.status}, rendered again")


def _reached(context: Context, other: Context) -> Iterator[Finding]:
    """What is wrong unless a write at one server invalidates the pages at the other."""
    with new_rows(context) as (writer, (row,)):
        warm(other, expected_pages(other, row, None))
        row, old = writer.write(row, "edit"), row
        yield from wrong_pages(settle(other, waiting(other, row, old, INVALIDATED_S, "an edit at the first server")))
