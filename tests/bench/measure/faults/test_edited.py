"""Rows edited by faults, on a site that cannot write rows, or fails an edit."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from bench.errors import BenchError
from bench.measure.faults import edited
from bench.measure.faults.fault_context import FaultNotApplicable
from bench.serve.machine.http import BadResponse
from bench.verify.mismatch import NotTried
from tests.bench.measure.faults.scenes import scene


def context_of(monkeypatch, *rows):
    """A scene whose deployment writes these rows, or raises an error instead."""

    @contextmanager
    def new_rows(context, count):
        if isinstance(rows[0], Exception):
            raise rows[0]
        yield SimpleNamespace(write=fails), list(rows)

    def fails(row, what):
        raise BadResponse("status 500")

    monkeypatch.setattr(edited.rows, "new_rows", new_rows)
    monkeypatch.setattr(edited.rows, "soon_right", lambda *_: pytest.fail("a failed edit need not show"))
    monkeypatch.setattr(edited.EditedRow, "warm", lambda self: None)
    context = scene()
    context.context = SimpleNamespace(layers=())
    return context


@pytest.mark.parametrize(
    ("error", "raised"),
    [(BadResponse("status 500"), BenchError), (OSError("refused"), BenchError), (NotTried("none"), FaultNotApplicable)],
)
def test_a_site_that_writes_no_row_is_reported_in_a_line(monkeypatch, error, raised):
    with pytest.raises(raised, match=str(error)), edited.edited_rows(context_of(monkeypatch, error)):
        pass


def test_an_edit_that_fails_is_wrong_and_need_not_show(monkeypatch):
    context = context_of(monkeypatch, SimpleNamespace(probe_page="/", title="old"))
    with edited.edited_rows(context) as (row,):
        row.edit("after an edit")
    assert context.wrong == ["an edit: status 500"]


def test_a_project_without_rows_has_none_to_edit(monkeypatch):
    context = context_of(monkeypatch, SimpleNamespace(probe_page="/", title="old"))
    context.site = SimpleNamespace(has_rows=False)
    with edited.edited_rows(context) as rows:
        assert rows == []
    with pytest.raises(FaultNotApplicable):
        edited.require_rows(context)
