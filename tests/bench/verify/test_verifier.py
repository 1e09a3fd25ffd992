"""The verifier of several deployments: when it asks the project for its expected pages again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec import structs

from bench.catalog import catalog
from bench.project import commands
from bench.project.description import Write
from bench.serve.database import Database
from bench.verify import verifier
from bench.verify.site import Site
from bench.verify.suite import Selection
from bench.verify.target_site import NO_COMMANDS
from tests.cases import bare, kit


@pytest.mark.parametrize(("write", "times"), [(None, 1), (Write("shell", "/"), 2)])
def test_a_described_write_stays_so_that_the_next_deployment_has_other_pages(monkeypatch, write, times):
    project, asked = kit(), []
    said = structs.replace(project.description, write=write)
    project = replace(project, project=structs.replace(project.project, description=said))
    monkeypatch.setattr(commands, "warm_up", lambda project: None)
    monkeypatch.setattr(verifier, "learn", lambda *words, **more: Site({}, {}, Path(), "/static/", NO_COMMANDS))
    monkeypatch.setattr(verifier, "prepare", lambda site: asked.append(site) or site)
    monkeypatch.setattr(verifier, "run_suite", lambda context, selection, progress: [])
    known = catalog.read()
    case = bare(known.stack("gunicorn"), known.layers["none"], project=project, database=Database("sqlite"))
    running = SimpleNamespace(env={"DATABASE_URL": "x"}, url="http://127.0.0.1:1/", case=case)
    one = verifier.Verifier(project, Selection(("status",)))
    for _ in range(2):
        one.verify(running)
    assert len(asked) == times
