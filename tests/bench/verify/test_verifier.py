"""The verifier of several deployments: when it asks the project for its expected pages again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec import structs

from bench.catalog import compose
from bench.project import commands, under_test
from bench.project.description import Write
from bench.serve.database import Database
from bench.verify import verifier
from bench.verify.site import Site
from bench.verify.suite import Selection


@pytest.mark.parametrize(("write", "times"), [(None, 1), (Write("shell", "/"), 2)])
def test_a_described_write_stays_so_that_the_next_deployment_has_other_pages(monkeypatch, write, times):
    project, asked = under_test.current(), []
    said = structs.replace(project.description, write=write)
    project = replace(project, project=structs.replace(project.project, description=said))
    monkeypatch.setattr(under_test, "current", lambda: project)
    monkeypatch.setattr(commands, "warm_up", lambda: None)
    monkeypatch.setattr(verifier, "learn", lambda *words, **more: Site({}, {}, Path(), Path(), Path()))
    monkeypatch.setattr(verifier, "prepare", lambda site: asked.append(site) or site)
    monkeypatch.setattr(verifier, "run_suite", lambda subject, selection, progress: [])
    composition = compose.Composition(SimpleNamespace(name="any"), (SimpleNamespace(name="none"),), {})
    running = SimpleNamespace(
        env={"DATABASE_URL": "x"}, url="http://127.0.0.1:1/", composition=composition, database=Database("sqlite")
    )
    one = verifier.Verifier(Selection(("status",)))
    for _ in range(2):
        one.verify(running)
    assert len(asked) == times
