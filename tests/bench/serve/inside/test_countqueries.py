"""The command that counts a page's queries, in a separate process under a layer's environment."""

from __future__ import annotations

import json

import pytest

from tests.managing import manage

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('queries') / 'site.sqlite3'}"
    for words in (["migrate", "--verbosity", "0"], ["loadfixtures", "--rows", "500"]):
        assert manage(*words, DATABASE_URL=url).returncode == 0
    return url


def counted(url: str, *pages: str, **env: str) -> dict:
    done = manage("countqueries", *pages, BENCHAPP_PROBES="1", DATABASE_URL=url, **env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_without_a_layer_a_page_runs_as_many_queries_each_time(database):
    counts = counted(database, "/", "/login/")
    assert counts["/"]["cold"] == counts["/"]["warm"] >= 5
    assert counts["/login/"] == {"cold": 0, "warm": 0}


def test_a_layer_saves_the_queries_of_a_warm_page(database):
    counts = counted(database, "/", CACHING_FRAGMENTS="1")
    assert counts["/"]["warm"] < counts["/"]["cold"]
    assert counted(database, "/", CACHING_PAGE_CACHE="1")["/"]["warm"] == 0


def test_it_stores_no_page_for_a_server(database, tmp_path):
    counts = counted(database, "/", CACHING_STATICGENERATOR_ROOT=str(tmp_path))
    assert counts["/"]["cold"] == counts["/"]["warm"]
    assert list(tmp_path.iterdir()) == []
