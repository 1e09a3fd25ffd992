"""Pages that are others than when they were rendered first: by themselves, or because their rows were changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bench.verify.in_process import Expected
from bench.verify.site import Site, rows_now


@dataclass(frozen=True)
class Changed:
    """The pages that are others now than when the expected pages were rendered.

    by_itself  what they are now, by path: their rows stay, and their text does not
    by_rows    the paths of those whose rows another program may have changed
    """

    by_itself: Mapping[str, Expected] = field(default_factory=dict)
    by_rows: tuple[str, ...] = ()


def changed(site: Site) -> Changed:
    """The pages of the site that are others now, and why. It renders them often, which takes a second or more."""
    if not site.has_database or not site.pages:
        return Changed()
    now = site.rendered_now(*site.pages, often=True)
    others = {path: page for path, page in now.items() if not site.pages[path].same(page)}
    if others and site.rows is not None and rows_now(site) == site.rows:
        return Changed(others)
    # Where rows may have changed, too, the renderings of now must differ as the first one does.
    by_itself = {path: page for path, page in others.items() if page.varies and page.same(site.pages[path])}
    return Changed(by_itself, tuple(path for path in others if path not in by_itself))


def knowing(site: Site, by_itself: Mapping[str, Expected]) -> Site:
    """The same site with what is known now of pages that change by themselves.

    A page is compared with what all its renderings have, if that holds for one that it was not learned from; one whose
    next rendering nothing tells is compared no more.
    """
    pages = dict(site.pages)
    for path, now in by_itself.items():
        known = replace(pages[path], again=(*pages[path].again, now.body, *now.again[:-1]))
        told = bool(now.again) and known.difference(now.again[-1]) is None
        pages[path] = replace(known, again=(*known.again, *now.again[-1:]), compared=known.compared and told)
    return replace(site, pages=pages)


def notes(site: Site) -> list[str]:
    """What a reader of the outcomes must know of the pages of the site."""
    if not site.has_database:
        return []
    varying = {path: page for path, page in site.pages.items() if page.varies}
    return [f"{path} differs from one rendering to the next: {page.said}" for path, page in varying.items()]
