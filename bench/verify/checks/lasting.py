"""Lifetime of cached pages: at most the time to live, not much shorter, and out of reach of clients."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from bench.serve.machine.http import BadResponse
from bench.verify import hits
from bench.verify.check import check as any_check
from bench.verify.context import Context
from bench.verify.mismatch import Figure, Finding, NotTried
from bench.verify.odd_clients import LOOPBACK, SOURCE
from bench.verify.wire import PageResponse, fetch

# The time to live of the clone, and how much older a page may be: servers count in whole seconds.
TTL_S, OLDER_S = 6, 1.5
# Tolerance for the last hit of a page before the end of its time to live.
EARLIER_S = 2.0
PAUSE_S = 0.2
# Requests that make a layer store a page, before a pause.
WARM = 3
# Methods that tell caches to forget pages, and hosts that a server may treat as its own.
PURGING = ("PURGE", "BAN", "REFRESH", "PURGEALL", "DELETE")
INSIDERS = ("", "localhost")
# Headers by which a page may name its time in some caches: the site's is the longest for all of them.
LONGER = {"X-Accel-Expires": "3600", "Surrogate-Control": "max-age=3600", "Cache-Control": "s-maxage=3600"}
RELOADS = ({"Cache-Control": "no-cache", "Pragma": "no-cache"}, {"Cache-Control": "max-age=0"})

check = partial(any_check, group="caching")
# The needs of checks that look at hits of whole pages.
NEEDS_HITS = (hits.require_stored_pages, hits.require_visible_hits, hits.require_cacheable)


@check("time-kept", *NEEDS_HITS, thorough=True)
def time_kept(context: Context) -> Iterator[Finding]:
    """A page is a hit for nearly its time to live, and no visitor, the first after a pause or one of many, gets an
    older page, whatever longer time the page names in its headers.

    The time to live is 6 s, in a clone of the deployment.
    """
    clone = context.clone({"cache_seconds": TTL_S})
    bound_s = TTL_S * max(1, len(context.layers)) + OLDER_S
    busy, *left = (hits.new_path() for _ in range(3))
    longer = hits.with_headers(**LONGER)
    known = {path: _Ages(clone, path) for path in (busy, longer, *left)}
    for ages in known.values():
        for _ in range(WARM):
            ages.request()
    begun = time.monotonic()
    # Each page without requests meanwhile, and the time of its next request.
    due = {path: begun + bound_s + number * TTL_S / 4 for number, path in enumerate(left)}
    while due or time.monotonic() < begun + bound_s:
        known[busy].request()
        known[longer].request()
        for path in [path for path, at in due.items() if time.monotonic() > at]:
            del due[path]
            known[path].request()
        time.sleep(PAUSE_S)
    for ages in known.values():
        if ages.oldest_s > bound_s:
            got = f"one of {ages.oldest_s:.1f} s"
            yield ages.last.wrong(f"no page older than {bound_s:g} s, with a time to live of {TTL_S} s", got)
    least_s = TTL_S - EARLIER_S
    if any(layer.renews for layer in context.layers):
        least_s /= 2
    if (kept_s := known[busy].oldest_s) < least_s:
        yield known[busy].last.wrong(f"hits of a page for {least_s:g} s at least", f"for {kept_s:.1f} s")
    yield Figure("oldest_hit_s", round(known[busy].oldest_s, 1))


class _Ages:
    """The renderings of a page, each with the time of its first response."""

    def __init__(self, context: Context, path: str) -> None:
        self.context, self.path = context, path
        self.first: dict[str | None, float] = {}
        self.oldest_s = 0.0
        self.last: PageResponse

    def request(self) -> None:
        """Request the page, and note its age."""
        begun = time.monotonic()
        self.last = self.context.get(self.path)
        seen = self.first.setdefault(hits.render_id(self.last), time.monotonic())
        self.oldest_s = max(self.oldest_s, begun - seen)


@check("purge-door", *NEEDS_HITS, leak=True)
def purge_door(context: Context) -> Iterator[Finding]:
    """No client can take a page out of a cache: PURGE, BAN and the like, by any address and Host, change nothing."""
    path = hits.new_path()
    warm = hits.repeat(context, path, WARM)
    outside = replace(context.target, source="")
    if outside.host in LOOPBACK and outside.via is None:
        outside = replace(outside, source=SOURCE)
    for method in PURGING:
        for host in INSIDERS:
            for purged in (path, "/.*"):
                try:
                    fetch(outside, purged, {"X-Purge-Regex": ".*", "X-Ban-Url": ".*"}, method=method, host=host)
                except (BadResponse, OSError):
                    # A server may close the connection of an unknown method.
                    continue
        # Each process may have a cache: one of them has a page from before.
        responses = (context.get(path) for _ in range(hits.MAX_TRIES))
        if not any(hits.is_hit(response, warm) for response in responses):
            yield context.get(path).wrong("still a hit", "a new rendering", f"GET {path} after {method} by a client")
            return


@check("reloads", *NEEDS_HITS)
def reloads(context: Context) -> Iterator[Finding]:
    """A visitor who reloads (Cache-Control: no-cache or max-age=0) gets the cached page, and causes no rendering."""
    for headers in RELOADS:
        path = hits.new_path()
        hits.repeat(context, path, WARM)
        if hits.until_hit(context, path, headers) is None:
            yield context.get(path, headers).wrong("a hit in the end", f"{hits.MAX_TRIES} renderings")


@check("coded-hits", *NEEDS_HITS)
def coded_hits(context: Context) -> Iterator[Finding]:
    """A page compressed by the application becomes a hit for visitors who all accept gzip."""
    if hits.stores_bodies(context):
        raise NotTried("a layer here stores only bodies, and a compressed page has an extra header")
    path = hits.new_path("coded")
    if hits.until_hit(context, path, {"Accept-Encoding": "gzip"}) is None:
        yield context.get(path).wrong("a hit for visitors with gzip", f"{hits.MAX_TRIES} renderings")


@check("not-public", hits.require_probes, leak=True)
def not_public(context: Context) -> Iterator[Finding]:
    """If public pages are named, a page whose path only begins like a public one is cached for nobody."""
    if not hits.worker_facts(context).get("public"):
        raise NotTried(
            "the project names no public pages (public of [tool.benchapp], or CACHING_PUBLIC): each of its pages may "
            "be cached"
        )
    yield from hits.rendered_each_time(context, _path_aside())


@check("named-public", *NEEDS_HITS, thorough=True, leak=True)
def named_public(context: Context) -> Iterator[Finding]:
    """If only one folder is named as public, its pages are hits, and a page whose path begins alike is cached for
    nobody.

    A clone of the deployment names the folder of the probes.
    """
    clone = context.clone({}, BENCHAPP_PUBLIC=json.dumps(["/__probe__/"]))
    path = hits.new_path()
    if hits.until_hit(clone, path) is None:
        yield clone.get(path).wrong("a hit in the end", f"{hits.MAX_TRIES} renderings")
    yield from hits.rendered_each_time(clone, _path_aside())


def _path_aside() -> str:
    """A new path of a probe page, begun like the other probe pages and not below their folder."""
    return f"/__probe__aside/{secrets.token_hex(8)}/"
