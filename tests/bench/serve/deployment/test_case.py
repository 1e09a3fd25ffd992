"""A case, resolved once."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from bench.errors import BenchError
from bench.serve.deployment.case import OWN_CACHE, POOL_OF_DJANGO, Case
from tests.cases import resolved


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
WHOLE = "__version__ = '99.0'"


@pytest.fixture
def modules():
    """A folder of modules that the user of the servers can read."""
    with tempfile.TemporaryDirectory(prefix="benchapp-modules-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        (Path(name) / "psycopg_pool.py").touch()
        yield Path(name)


def test_django_s_pool_is_for_a_project_that_can_import_psycopg_3(modules):
    url, env = "postgresql://127.0.0.1:1/none", {"PYTHONPATH": str(modules)}
    how = {"database_url": url, "changes": {"pool": POOL_OF_DJANGO}, "env": env}
    (modules / "psycopg.py").write_text(BROKEN)
    with pytest.raises(BenchError, match=f"BENCHAPP_POOL={POOL_OF_DJANGO}: .*psycopg 3") as raised:
        resolved("gunicorn", **how)
    assert "\n" not in str(raised.value)

    (modules / "psycopg.py").write_text(WHOLE)
    assert resolved("gunicorn", **how).settings["pool"] == POOL_OF_DJANGO
