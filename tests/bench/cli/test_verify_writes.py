"""`python -m bench verify`: what it may write to a database that a project uses itself, and what it says of it."""

from __future__ import annotations

import contextlib
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.cli import verify
from bench.project import under_test
from bench.project.description import Description
from bench.serve import deployment
from bench.verify.site import Site
from bench.verify.suite import Selection
from bench.verify.wire import Target

NOTE = "database: the project's own, as it is"
HERE = Target.parse("http://127.0.0.1:1/")


@pytest.mark.parametrize(("write", "may"), [(False, (False, False)), (True, (True, False))])
def test_the_database_of_a_running_project_is_written_to_by_leave_alone(monkeypatch, write, may):
    facts = SimpleNamespace(databases={}, database_files={}, databases_in_memory=())
    said = dict.fromkeys(("python", "manage_py", "var")) | {"description": Description(), "copied": {}}
    project = SimpleNamespace(facts=facts, recorded="theirs", overlaid=False, environment=dict, **said)
    monkeypatch.setattr(under_test, "current", lambda: project)
    for name in ("site_environment", "warm_up"):
        monkeypatch.setattr(verify.commands, name, lambda *words: {})
    monkeypatch.setattr(verify, "learn", lambda *words, **more: Site({}, {}, Path(), Path(), Path()))
    monkeypatch.setattr(verify, "prepare", lambda site: site)
    args = Namespace(target="http://live/", database="postgresql://live/shop", env=[], write=write)
    site, _ = verify._site_of(HERE, args)
    assert (site.may_write, site.is_copy) == may


def test_notes_are_said_once_and_go_into_the_document(capsys, monkeypatch):
    @contextlib.contextmanager
    def deployed(composition, **how):
        yield SimpleNamespace(notes=[NOTE], died=lambda: None)

    monkeypatch.setattr(deployment, "deployed", deployed)
    monkeypatch.setattr(verify.Verifier, "verify", lambda self, running, progress: [])
    composition = SimpleNamespace(stack=SimpleNamespace(name="any"), layer_name="none")
    args = Namespace(write=False, database=None, size="unlimited")
    assert verify._verify_all([composition] * 2, Selection(), args) == ([], [NOTE])
    assert capsys.readouterr().err.count(f"note: {NOTE}\n") == 1
