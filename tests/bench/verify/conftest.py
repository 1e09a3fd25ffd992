"""The suite against a fake site."""

from __future__ import annotations

from typing import Any

import pytest

from bench.results.records import Outcome
from bench.verify.site import Site
from bench.verify.suite import Selection, Subject, run_suite
from bench.verify.wire import Target
from tests.bench.verify.fake_http import serving
from tests.bench.verify.fake_writes import FakeWrites


def verified(
    url: str,
    site: Site,
    layer: str = "none",
    *,
    declared: dict[str, str] | None = None,
    running: Any = None,
    **selection: Any,
) -> list[Outcome]:
    """The outcomes of the suite against the fake site."""
    chosen = Selection(**{name: tuple(value) if name != "thorough" else value for name, value in selection.items()})
    env = running.env if running else {}
    return run_suite(Subject(Target.parse(url), site, "stub", layer, env, declared or {}, running), chosen)


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    return FakeWrites(tmp_path_factory.mktemp("stub"))


@pytest.fixture(scope="module")
def url(stub):
    with serving(stub) as url:
        yield url
