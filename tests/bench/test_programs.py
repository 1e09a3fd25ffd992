"""Versions that programs print."""

from __future__ import annotations

from bench import programs


def test_a_program_that_leaves_a_directory_behind_leaves_none(tmp_path, monkeypatch):
    program = tmp_path / "cherokee-worker"
    program.write_text('#!/bin/sh\nmktemp -d -t cherokee.XXXXXX > "$0.made"; echo "Cherokee Web Server 1.2.104"\n')
    program.chmod(0o755)
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    assert programs.version((str(program),)) == "1.2.104"
    assert "cherokee." in (tmp_path / "cherokee-worker.made").read_text()
    assert list(folder.iterdir()) == []
