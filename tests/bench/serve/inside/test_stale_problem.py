"""The inspection of a project and the caching app refuse the same names of values in rules of stale pages."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from bench import paths
from benchapp.caching import stale_rules

RIGHT = ["/", "/{pk}/", "/{user.pk}/", "/{user.groups.first}/", "{get_admin_url}", "/{content_type.app_label}/"]
WRONG = ["/{nothing}/", "/{user.nothing}/", "/{content_type.nothing.pk}/"]


@pytest.fixture
def inspection(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module that a project's Python runs beside the others of its folder."""
    monkeypatch.syspath_prepend(paths.PACKAGE / "serve" / "inside")
    return importlib.import_module("inspect_running")


@pytest.mark.parametrize("page", [*RIGHT, *WRONG])
def test_names_that_no_row_has_are_refused(inspection: ModuleType, page: str):
    is_wrong = page in WRONG
    assert bool(inspection.stale_problem({"admin.LogEntry": [page]})) is is_wrong
    assert bool(stale_rules.problem("admin.LogEntry", [page])) is is_wrong
