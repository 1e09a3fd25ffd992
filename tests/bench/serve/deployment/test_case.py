"""A case, resolved once."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace

import pytest
from msgspec import structs

from bench.errors import BenchError
from bench.serve.deployment.case import OWN_CACHE, POOL_OF_DJANGO, Case
from tests.cases import resolved
from tests.projects import open_folder


def test_a_changed_case_looks_nothing_up_again():
    case = resolved("gunicorn", "view-cache")
    stack = structs.replace(case.stack, name="mine")
    manifests = tuple(structs.replace(layer, name="own") for layer in case.manifests)
    changed = replace(case, stack=stack, manifests=manifests).changed({"processes": 3})
    assert isinstance(changed, Case)
    assert (changed.stack.name, changed.layer_name, changed.settings["processes"]) == ("mine", "own", 3)
    assert changed.size is case.size and changed.services == case.services


def test_a_changed_case_keeps_a_cache_of_the_users_own():
    case = resolved("gunicorn", "view-cache", env={"CACHE_URL": "locmemcache://"})
    changed = case.changed({"processes": 3})
    assert isinstance(changed, Case)
    assert changed.layers == case.layers and changed.services == ()
    assert changed.notes == case.notes and f"view-cache: {OWN_CACHE}" in changed.notes


BROKEN = "raise ImportError('no pq wrapper available')"
WORKING = "__version__ = '99.0'"


@contextlib.contextmanager
def psycopg_of(text):
    """A variable by which the servers' user imports such a psycopg, and a pool."""
    with open_folder() as folder:
        (folder / "psycopg_pool.py").touch()
        (folder / "psycopg.py").write_text(text)
        yield {"PYTHONPATH": str(folder)}


def test_django_s_pool_is_for_a_project_that_can_import_psycopg_3():
    how = {"database_url": "postgresql://127.0.0.1:1/none", "changes": {"pool": POOL_OF_DJANGO}}
    with psycopg_of(BROKEN) as env, pytest.raises(BenchError) as raised:
        resolved("gunicorn", env=env, **how)
    assert re.search(f"BENCHAPP_POOL={POOL_OF_DJANGO}: .*psycopg 3", str(raised.value))
    assert "\n" not in str(raised.value)

    with psycopg_of(WORKING) as env:
        assert resolved("gunicorn", env=env, **how).settings["pool"] == POOL_OF_DJANGO
