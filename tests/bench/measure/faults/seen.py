"""Visits like the load tool's log, made by hand."""

from __future__ import annotations

from bench.measure.faults.observe import FaultTimeline
from bench.measure.faults.visitors import NOBODY, RequestedPage
from bench.measure.load.visits import Visit

PAGES = [
    RequestedPage("/anonymous/"),
    RequestedPage("/anonymous/", "me", "sessionid=1"),
    RequestedPage("/static/x.css", None),
]
MOMENTS = FaultTimeline(struck=10.0, over=10.0, old="release-1", new="release-1")
DEPLOY = FaultTimeline(struck=10.0, over=12.0, deployed=12.0, old="release-1", new="release-2")


def visit(
    due, *, page=0, kept=False, again=0, status=200, failure="", took=0.1, late=0.0, size=100, mark=None, **words
):
    """A visit; by default an anonymous page, right and fresh. `words` are parts of the page's mark."""
    words = {"code": "release-1", "account": PAGES[page].account or NOBODY, "rendered": due, **words}
    words = {"template": words["code"], "static": "/static/r.css", **words}
    if mark is None:
        names = ("code", "template", "account", "rendered", "static")
        mark = tuple(str(words[name]) for name in names) if not failure and status == 200 and page != 2 else ()
    return Visit(due, due + late, due + took, page, kept, again, 0 if failure else status, failure, size, mark)
