"""Changed pages: changes by themselves are told from another program's writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bench.serve.machine.http import Sent, Target
from bench.verify.changing import Changed, changed, knowing, notes
from bench.verify.context import Accounts, Context
from bench.verify.in_process import ExpectedPage
from bench.verify.mismatch import Mismatch, NotTried
from bench.verify.site import Site
from bench.verify.suite import concerns_pages
from bench.verify.target_site import NO_COMMANDS

HTML = "text/html;charset=utf-8"
ORDERS = ["<p>{}</p><p>{}</p><p>{}</p>".format(*order) for order in ("abc", "acb", "bac")]


@dataclass(frozen=True)
class Rendered(Site):
    """A site of one page, with its current renderings and its database's text."""

    now: list[str] = field(default_factory=list)
    written: str | None = "as before"

    def _command(self, words: list[str], env: Any, *, reads: bool = True) -> Any:
        if words == ["writtenrows"]:
            return {"written": self.written}
        assert words == ["renderpages", "--often", "/"]
        return {"/": {"status": 200, "content_type": HTML, "body": self.now[0], "again": self.now[1:]}}


def site(before: str, now: list[str], written: str | None = "as before") -> Rendered:
    pages = {"/": ExpectedPage(200, HTML, before)}
    return Rendered({}, pages, Path(), "/static/", NO_COMMANDS, rows="as before", now=now, written=written)


def test_a_page_that_stays_has_not_changed():
    assert changed(site("<p>a</p>", ["<p>a</p>"])) == Changed()


@pytest.mark.parametrize("written", ["something", None])
def test_rows_of_another_program_change_a_page(written):
    assert changed(site("<p>1 row</p>", ["<p>2 rows</p>"], written)).by_rows == ("/",)
    # Differences in each rendering do not explain other rows.
    others = ["<p>2 rows</p><b>x</b>", "<p>2 rows</p><b>y</b>"]
    assert changed(site("<p>1 row</p><b>z</b>", others, written)).by_rows == ("/",)


@pytest.mark.parametrize(
    ("written", "now"),
    [
        ("as before", ["<p>17:03</p>"]),
        ("as before", ["<p>17:03:11</p>", "<p>17:03:12</p>"]),
        ("something", ["<p>17:03:11</p>", "<p>17:03:12</p>"]),
        (None, ["<p>17:03:11</p>", "<p>17:03:12</p>"]),
    ],
)
def test_a_clock_changes_a_page_by_itself(written, now):
    changes = changed(site("<p>17:02:59</p>", now, written))
    assert (list(changes.by_itself), changes.by_rows) == (["/"], ())


def test_what_all_renderings_have_is_compared_if_that_predicts_the_next_one():
    before = site("<p>17:02:59</p> words", ["<p>17:03:11</p> words", "<p>17:03:12</p> words"])
    known = knowing(before, changed(before).by_itself)
    assert known.pages["/"].difference("<p>18:00:00</p> words") is None
    assert known.pages["/"].difference("<p>18:00:00</p> other words") is not None
    assert notes(known) == ["/ differs from one rendering to the next: only what stays is compared"]


@pytest.mark.parametrize("now", [ORDERS[1:], ["<p>another time</p>"]])
def test_a_page_whose_next_rendering_nothing_tells_is_named_and_not_compared(now):
    before = site(ORDERS[0], now)
    known = knowing(before, changed(before).by_itself)
    assert not known.pages["/"].compared
    assert notes(known) == ["/ differs from one rendering to the next: its text is not compared"]
    assert changed(known) == Changed()


@pytest.mark.parametrize(
    ("path", "concerns"), [("/", True), ("/?visitor=1", True), ("/__probe__/inside", False), (b"/\xff", True)]
)
def test_only_a_wrong_response_for_a_page_has_all_pages_rendered_again(path, concerns):
    context = Context(Target.parse("http://127.0.0.1:1"), site("<p>a</p>", []), (), Accounts(site("", []), {}))
    wrong = Mismatch("this", "that", Sent("http://127.0.0.1", "GET", path))
    assert concerns_pages({"some": [wrong]}, context) is concerns
    assert concerns_pages({"some": [Mismatch("this", "that")]}, context)
    assert not concerns_pages({"some": [NotTried("no")]}, context)
