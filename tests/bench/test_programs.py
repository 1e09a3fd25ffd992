"""Versions that programs print."""

from __future__ import annotations

import re

from bench import paths, programs

# An extra as pip and pipx read it, with the path or name of the distribution before it.
EXTRA = re.compile(r"([\w./-]*benchapp)\[[\w,{}]+\]")


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


def test_an_extra_is_installed_from_the_clone_as_the_readme_installs_benchapp():
    assert "pipx install ./benchapp" in (paths.KIT / "README.md").read_text("utf-8")
    assert programs.install_extra("hosts") == "pipx install --force --include-deps './benchapp[hosts]'"
    spelled = {}
    for folder in ("bench", "deploy", "docs"):
        for path in (paths.KIT / folder).rglob("*"):
            names = set()
            if path.suffix in {".py", ".toml", ".md", ".j2", ".yml"}:
                names = {*EXTRA.findall(path.read_text("utf-8"))}
            if names:
                spelled[path.relative_to(paths.KIT).as_posix()] = names
    assert [path for path, names in spelled.items() if names != {"./benchapp"}] == []
    # A message takes it from there.
    assert [path for path in spelled if not path.startswith("docs/")] == ["bench/programs.py"]
