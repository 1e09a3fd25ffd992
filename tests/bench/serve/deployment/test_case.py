"""A case, resolved once."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from bench.serve.deployment.case import OWN_CACHE, Case
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
