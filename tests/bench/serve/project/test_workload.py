"""Workloads: the recorded session exists at any number of rows, and a step that leads nowhere is named."""

from __future__ import annotations

import re

import pytest

from bench.errors import BenchError
from bench.measure.run import workload
from bench.measure.run.workload import Workload, resolve
from tests.cases import kit

STATIC = {"site.css": "site.abc.css", "site.js": "site.def.js", "logo.svg": "logo.012.svg"}


def site(last_pages=None, links=""):
    """Pages of a site whose lists have that many pages and whose every page has these links."""

    def page(path):
        paths.append(path)
        match = re.fullmatch(r"/(\w+)/", path)
        last = (last_pages or {}).get(match[1], 1) if match else 1
        return links + (f'<a href="{path}page/{last}/">Last</a>' if last > 1 else "")

    paths = []
    page.paths = paths
    return page


def steps(*lines, page=None, static=STATIC):
    return resolve(Workload("w", "a workload", lines), page or site(), static, "/static/")


LINKS = (
    '<a href="/posts/31/#comments">x</a><a href="/posts/7/">y</a><a href="/posts/31/">x</a><a href="/authors/5/">z</a>'
)


@pytest.mark.parametrize(
    "step, last, expected",
    [
        ("page:/posts/:2", 8000, "/posts/page/2/"),
        ("page:/posts/:95%", 8000, "/posts/page/7600/"),
        ("page:/posts/:100%", 8000, "/posts/page/8000/"),
        ("page:/posts/:1%", 8, "/posts/"),
        ("page:/posts/:3", 2, "/posts/page/2/"),
        ("page:/posts/:95%", 1, "/posts/"),
        ("page:/posts/:2", 1, "/posts/"),
    ],
)
def test_pages_of_lists_exist_however_long_the_list_is(step, last, expected):
    assert steps(step, page=site({"posts": last})) == (expected,)


@pytest.mark.parametrize(
    "lines, expected",
    [
        (("/", "/login/"), ("/", "/login/")),
        (("/", "static:site.css"), ("/", "/static/site.abc.css")),
        # Links are those of the page before, counted on from the first when there are fewer.
        (("/", "link:/posts/:1", "link:/posts/:2"), ("/", "/posts/31/", "/posts/7/")),
        (("/", "link:/posts/:3", "link:/authors/:1"), ("/", "/posts/31/", "/authors/5/")),
    ],
)
def test_steps_become_addresses(lines, expected):
    assert steps(*lines, page=site(links=LINKS)) == expected


def test_static_files_between_do_not_change_the_page():
    page = site(links=LINKS)
    assert steps("/posts/", "static:site.js", "link:/posts/:2", page=page)[-1] == "/posts/7/"
    assert page.paths == ["/posts/"]


def test_a_page_is_looked_at_once():
    page = site({"posts": 9}, LINKS)
    steps("/posts/", "page:/posts/:2", "page:/posts/:50%", "/posts/", "link:/posts/:1", page=page)
    assert page.paths == ["/posts/"]


@pytest.mark.parametrize(
    "lines, message",
    [
        (("/", "link:/posts/:1"), "workload w, step 2: / links to nothing below /posts/"),
        (("/", "static:other.css"), "workload w, step 2: no static file other.css was collected"),
    ],
)
def test_a_step_that_leads_nowhere_is_named(lines, message):
    with pytest.raises(BenchError) as error:
        steps(*lines)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "step", ["", "home", "link:/posts/:0", "page:tags:1", "link:/posts/", "page:/posts/:0", "/a b", "static:"]
)
def test_a_line_that_is_no_step_is_refused(step):
    with pytest.raises(BenchError, match=r"workload w, step 1: .* is not a step"):
        Workload("w", "a workload", (step,))


def test_a_workload_has_steps():
    with pytest.raises(BenchError, match="workload w has no steps"):
        Workload("w", "a workload", ())


def test_the_default_is_the_recorded_session():
    assert next(iter(workload.workloads(kit()))) == "session"
    names = ["session", "home", "login", "static-small", "static-large", "sleep"]
    assert list(workload.workloads(kit())) == [*names, *(f"{name}-close" for name in names)]


def test_every_workload_can_be_requested_on_new_connections():
    assert workload.workload(kit(), "home").keep_alive and not workload.workload(kit(), "home-close").keep_alive
    assert workload.workload(kit(), "home-close").steps == workload.workload(kit(), "home").steps


def test_in_the_session_each_page_is_followed_by_its_three_static_files():
    recorded = workload.workload(kit(), "session").steps
    pages, files = recorded[::4], [recorded[number::4] for number in (1, 2, 3)]
    assert not any(step.startswith("static:") for step in pages)
    assert [set(names) for names in files] == [{"static:site.css"}, {"static:site.js"}, {"static:logo.svg"}]
    assert len(pages) >= 20


@pytest.mark.parametrize("last_pages", [{}, {"authors": 800, "posts": 8000, "comments": 32000}])
def test_the_session_visits_lists_details_and_home_at_any_size(last_pages):
    paths = resolve(workload.workload(kit(), "session"), site(last_pages, LINKS), STATIC, "/static/")
    assert {"/", "/authors/", "/posts/", "/comments/", "/posts/7/", "/authors/5/"} <= set(paths)
    assert all(path.startswith("/") for path in paths)
    if last_pages:
        assert "/posts/page/7600/" in paths


def test_an_unknown_workload_gets_the_nearest_name():
    with pytest.raises(BenchError, match=r"no workload called 'sesion'; did you mean session\?"):
        workload.workload(kit(), "sesion")
    with pytest.raises(BenchError, match="no workload called 'x'; "):
        workload.workload(kit(), "x")
