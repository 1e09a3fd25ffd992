"""The packages of an image: those of one stack, each with a hash, and all their dependencies."""

from __future__ import annotations

import importlib.metadata
import re

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bench.serve.catalog import catalog
from bench.serve.production import lock_file


def pins(text: str) -> set[str]:
    """The names of the packages of a lock file, each of which has a hash."""
    entries = re.split(r"(?m)^(?=\w)", text)[1:]
    assert all("--hash=sha256:" in entry for entry in entries)
    return {canonicalize_name(entry.partition("==")[0]) for entry in entries}


def needed(name: str) -> set[str]:
    """The dependencies of the installed package on this Python, without extras."""
    requirements = [Requirement(line) for line in importlib.metadata.requires(name) or []]
    return {canonicalize_name(it.name) for it in requirements if not it.marker or it.marker.evaluate({"extra": ""})}


@pytest.mark.parametrize(
    "stack", ["nginx-gunicorn", "gunicorn-uvicorn", "nginx-granian", "gunicorn-gevent", "hypercorn"]
)
def test_a_stack_gets_its_packages_and_all_that_they_need(stack):
    names = lock_file.of_servers(catalog.read().stacks[stack].servers)
    packages = pins(lock_file.pinned([*lock_file.of_site(), *names]))
    assert {"django", "psycopg2-binary", "whitenoise", *names} <= packages
    for name in packages:
        try:
            assert needed(name) <= packages, name
        except importlib.metadata.PackageNotFoundError:
            # Of another Python.
            assert name in ("async-timeout", "tzdata")


def test_what_is_there_already_is_not_pinned_again_nor_what_only_that_needs():
    assert pins(lock_file.pinned(["uvicorn"], {"h11"})) == {"uvicorn", "click"}
    assert pins(lock_file.pinned(["uvicorn"], {"uvicorn"})) == set()
    assert lock_file.pinned(["gunicorn", "no-such-package"]) == ""
