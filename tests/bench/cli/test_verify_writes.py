"""`python -m bench verify` on a database of the project: permission to write, and notes."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest

from bench.cli import verify
from bench.serve.deployment import deployment
from bench.serve.deployment.database import Database
from bench.serve.machine.http import Target
from bench.serve.project.description import Description
from bench.verify import site as sites
from bench.verify.suite import Selection
from tests.cases import bare, kit

NOTE = "database: the project's own, as it is"
HERE = Target.parse("http://127.0.0.1:1/")


@pytest.mark.parametrize(("write", "may"), [(False, (False, False)), (True, (True, False))])
def test_the_database_of_a_running_project_is_written_to_only_by_permission(monkeypatch, write, may):
    facts = SimpleNamespace(databases={}, database_files={}, databases_in_memory=())
    names = ("python", "manage_py", "var", "static_root", "media_root")
    fields = dict.fromkeys(names) | {"description": Description(), "copied": {}}
    user = SimpleNamespace(prefix=())
    project = SimpleNamespace(facts=facts, recorded="theirs", environment=dict, worker=lambda: user, **fields)
    project.names = dict.fromkeys(("static_url", "media_url"), "")
    for name in ("site_environment", "warm_up", "make_files", "interpreter"):
        monkeypatch.setattr(verify.commands, name, lambda *words: {})
    monkeypatch.setattr(sites, "with_urls", lambda site: site)
    monkeypatch.setattr(verify, "prepare", lambda site: site)
    site = verify._site_of(HERE, project, Database("postgresql", "postgresql://live/shop"), {}, write)
    assert (site.may_write, site.is_copy) == may


def test_notes_are_printed_once_and_go_into_the_document(capsys, monkeypatch):
    @contextlib.contextmanager
    def deployed(case, **how):
        yield SimpleNamespace(notes=[NOTE], died=lambda: None)

    monkeypatch.setattr(deployment, "deployed", deployed)
    monkeypatch.setattr(verify.Verifier, "verify", lambda self, running, progress: [])
    case = bare(SimpleNamespace(name="any"), SimpleNamespace(name="none"))
    assert verify._verify_all([case] * 2, verify.Verifier(kit(), Selection())) == ([], [NOTE])
    assert capsys.readouterr().err.count(f"note: {NOTE}\n") == 1
