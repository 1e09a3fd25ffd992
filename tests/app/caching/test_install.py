"""The caching app in a project of a stranger: installed by two settings, its mistakes said by `manage.py check`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import paths
from tests.app.caching.fresh import FreshProject

VISITS = """
from django.contrib.auth.models import Group, User
from benchapp.caching.invalidation import StalePages, invalidate

results["first"], results["second"] = get().text, get().text
Group.objects.create(name="readers")
results["unwatched"] = get().text
invalidate(StalePages(frozenset({"/"})))
results["invalidated"], results["stored"] = get().text, get().text
ann = Client()
ann.force_login(User.objects.create(username="ann"))
results["ann"], results["ann_again"] = get(client=ann).text, get(client=ann).text
results["others"] = get().text
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> FreshProject:
    return FreshProject(tmp_path_factory.mktemp("fresh") / "project")


def test_a_fresh_project_has_misses_hits_and_invalidations(project: FreshProject):
    texts = project.results(VISITS)
    assert texts["first"] == texts["second"] == texts["unwatched"]
    assert "readers" not in texts["first"] and "readers" in texts["invalidated"]
    assert texts["invalidated"] == texts["stored"] == texts["others"]
    assert "for ann:" in texts["ann"] and texts["ann"] != texts["ann_again"]


def test_a_write_invalidates_the_pages_of_its_model(project: FreshProject):
    script = """
from django.contrib.auth.models import Group
results["first"] = get().text
Group.objects.create(name="writers")
results["second"], results["third"] = get().text, get().text
from django.test import override_settings
with override_settings(CACHING_LAYERS={}):
    results["tested"], results["tested_again"] = get().text, get().text
results["stored"] = get().text
"""
    texts = project.results(script, settings="CACHING_STALE = {'auth.Group': ['/']}")
    assert "writers" in texts["second"]
    assert texts["second"] == texts["third"] == texts["stored"] != texts["first"]
    assert len({texts["second"], texts["tested"], texts["tested_again"]}) == 3


def checked(project: FreshProject, settings: str = "") -> tuple[int, list[str]]:
    """The exit code of `manage.py check`, and the ids of what it says."""
    done = project.run("manage.py", "check", settings=settings)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, re.findall(r"\(caching\.(\w+)\)", done.stderr)


@pytest.mark.parametrize(
    ("lines", "code", "ids"),
    [
        ("CACHES = {'default': {'BACKEND': 'django.core.cache.backends.db.DatabaseCache'}}", 0, []),
        ("", 0, ["W003"]),
        ("CACHING_LAYERS = ['page-cache']; CACHING_STALE = ['/']", 1, ["E001", "E001"]),
        ("CACHING_LAYERS = {'varnsh': {}}; CACHING_SECONDS = '60'", 1, ["E003", "E001"]),
        ("MIDDLEWARE.pop(); CACHING_STALE = {'auth.Nobody': ['/']}", 1, ["E006", "E002", "W003"]),
    ],
)
def test_mistakes_are_lines_of_check(project: FreshProject, lines: str, code: int, ids: list[str]):
    found_code, found_ids = checked(project, lines)
    assert (found_code, sorted(found_ids)) == (code, sorted(ids))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("MIDDLEWARE.pop()", "WatchMiddleware as the last entry"),
        ("CACHING_LAYERS = {'varnsh': {}}", "'varnsh' is no layer"),
        ("CACHING_LAYERS = {'staticgenerator': {}}", "staticgenerator: the option 'root' is missing"),
        ("CACHING_SECONDS = '60'", "CACHING_SECONDS is '60'"),
        ("CACHE_MIDDLEWARE_ALIAS = 'pages'", "CACHES has no 'pages'"),
        ("MIDDLEWARE.insert(1, MIDDLEWARE.pop(2))", "no caching layer sees what django.contrib.sessions"),
    ],
)
def test_a_server_does_not_start_with_a_mistake(project: FreshProject, lines: str, message: str):
    start = "from django.core.wsgi import get_wsgi_application as start; start()"
    done = project.run("-c", start, settings=lines)
    assert done.returncode == 1
    assert "ImproperlyConfigured" in done.stderr.splitlines()[-1] and message in done.stderr.splitlines()[-1]


LAYER = """
from benchapp.caching.pages import PageStore, middleware_of
from benchapp.caching.registry import Layer, options


class DictStore(PageStore):
    bodies = False
    pages = {}

    def generation(self):
        return "always"

    def look_up(self, name, variant):
        return self.get(name, variant), self.generation()

    def get(self, name, variant):
        return self.pages.get((name, variant))

    def put(self, name, variant, page, generation):
        self.pages[name, variant] = page
        return True

    @property
    def locks(self):
        from django.core.cache import cache

        return cache


def purge(stale):
    assert options("fresh.caching.LAYER") == {"size": 3}
    for name, variant in list(DictStore.pages):
        if stale.covers(name):
            del DictStore.pages[name, variant]


middleware = middleware_of(DictStore)
LAYER = Layer("fresh.caching.purge", ("fresh.caching.middleware",), optional={"size": "megabytes"})
"""


def test_a_project_adds_a_layer(project: FreshProject, tmp_path: Path):
    (project.folder / "fresh/caching.py").write_text(LAYER)
    layer = "CACHING_LAYERS = {'fresh.caching.LAYER': {'size': 3}}"
    results = project.results(
        VISITS + "from fresh.caching import DictStore\nresults['names'] = list(DictStore.pages)", layer
    )
    assert results["first"] == results["second"] == results["unwatched"]
    assert "readers" in results["invalidated"] and results["invalidated"] == results["stored"]
    assert results["names"] == [["/", ""]]
    assert checked(project, layer) == (0, [])


def test_the_layer_of_the_documentation_runs_as_printed(project: FreshProject):
    text = (paths.KIT / "docs/caching.md").read_text("utf-8").replace("mysite", "fresh")
    code = text.partition("```python\n# fresh/caching.py\n")[2].partition("```")[0]
    module, _, settings = code.partition("# settings.py\n")
    (project.folder / "fresh/caching.py").write_text(module)
    texts = project.results(VISITS, settings)
    assert texts["first"] == texts["second"] == texts["unwatched"]
    assert "readers" in texts["invalidated"] and texts["invalidated"] == texts["stored"]
    assert (project.folder / "purged.log").read_text() == "/\n"
    assert checked(project, settings) == (0, [])
