"""The database of a deployment: made and filled once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench.host.identity import worker
from bench.project import under_test
from bench.serve import database


def test_the_live_line_gives_way_before_rows_are_loaded(tmp_path, monkeypatch, capsys):
    steps = []

    def manage(words, url, identity, show=False):
        steps.append(words[0])
        Path(database.sqlite_path(url)).touch()

    monkeypatch.setattr(under_test, "_selected", [replace(under_test.current(), var=tmp_path)])
    monkeypatch.setattr(database.commands, "manage", manage)
    monkeypatch.setattr(database, "check_sqlite", lambda path, identity: None)
    chosen = database.parse("sqlite")
    for _ in range(2):
        database.prepare(chosen, chosen.url, worker(), steps.append)
    assert steps == ["", "migrate", "loadfixtures"], "once, and after the line is cleared"
    assert capsys.readouterr().err == "sqlite: creating the database and loading its rows (once)\n"
