"""What a fault can do to the site of a deployment."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.faults.scene import CannotFault, Versions
from bench.project import under_test


def test_another_project_has_no_new_version_whose_pages_could_be_told_from_the_old(monkeypatch):
    monkeypatch.setattr(under_test, "current", lambda: SimpleNamespace(own=False))
    versions = Versions(SimpleNamespace(current=Path("/")))
    with pytest.raises(CannotFault, match="no page of another project says which version rendered it"):
        versions.new()
    assert versions.word == "release-1" and versions.served == Path("/")
