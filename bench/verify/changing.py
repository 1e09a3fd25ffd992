"""Pages that changed since their first rendering: by themselves, or with their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bench.verify.in_process import ExpectedPage
from bench.verify.site import Site, rows_now


@dataclass(frozen=True)
class Changed:
    """Pages that changed since the expected pages were rendered.

    by_itself  the new expected pages, by path: the rows are the same, the text is not
    by_rows    the paths of pages whose rows another program may have changed
    """

    by_itself: Mapping[str, ExpectedPage] = field(default_factory=dict)
    by_rows: tuple[str, ...] = ()


def changed(site: Site) -> Changed:
    """Find the pages that changed, and why. Renders them often, in a second or more."""
    if not site.has_database or not site.pages:
        return Changed()
    now = site.rendered_now(*site.pages, often=True)
    others = {path: page for path, page in now.items() if not site.pages[path].same(page)}
    if others and site.rows is not None and rows_now(site) == site.rows:
        return Changed(others)
    # If rows may have changed too, the new renderings must differ from each other as the first ones did.
    by_itself = {path: page for path, page in others.items() if page.varies and page.same(site.pages[path])}
    return Changed(by_itself, tuple(path for path in others if path not in by_itself))


def knowing(site: Site, by_itself: Mapping[str, ExpectedPage]) -> Site:
    """Add the new knowledge of pages that change by themselves to the site.

    A page is compared with the text common to all its renderings, if another rendering confirms this text and all have
    it in one order; otherwise the page is no longer compared.
    """
    pages = dict(site.pages)
    for path, now in by_itself.items():
        known = replace(pages[path], again=(*pages[path].again, now.body, *now.again[:-1]))
        is_repeated = bool(now.again) and known.difference(now.again[-1]) is None
        pages[path] = replace(known, again=(*known.again, *now.again[-1:]), confirmed=known.confirmed and is_repeated)
    return replace(site, pages=pages)


def notes(site: Site) -> list[str]:
    """Notes on the site's pages for the reader of the outcomes."""
    if not site.has_database:
        return []
    varying = {path: page for path, page in site.pages.items() if page.varies}
    return [f"{path} differs from one rendering to the next: {page.scope}" for path, page in varying.items()]
