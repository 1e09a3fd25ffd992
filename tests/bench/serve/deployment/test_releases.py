"""Releases of the project side by side."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
from msgspec import structs

from bench.errors import BenchError
from bench.serve.deployment.layout import Layout
from bench.serve.deployment.releases import Releases
from bench.serve.machine.identity import worker
from tests.cases import kit


@pytest.fixture
def releases(tmp_path, monkeypatch):
    """Releases of a small project; its static files are those of a folder of two."""
    identity = worker()
    project = tmp_path / "project"
    for name in ("app/code.py", "tests/test.py", ".git/config", "var/data"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("VERSION = 1\n")
    (project / "manage.py").write_text("")
    small = replace(kit(), project=structs.replace(kit().project, folder=project), var=tmp_path / "kept")
    small.static_root.mkdir(parents=True)
    (small.static_root / "x.css").write_text("x")
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    layout = Layout(run_dir, run_dir / "run")
    copies = Releases(small, layout, identity)
    monkeypatch.setattr(copies, "collect_static", lambda folder: None)
    places = layout.places(small, identity, 8000)
    return copies, copies.begin(places)


def test_the_first_release_is_a_copy_that_current_leads_to(releases):
    copies, places = releases
    assert (places.project, places.static_root) == (str(copies.current), str(copies.static_root))
    assert copies.current.is_symlink()
    assert sorted(path.name for path in copies.current.iterdir()) == ["__pycache__", "app", "bench", "manage.py", "var"]
    assert list((copies.current / "var").iterdir()) == []
    assert (copies.static_root / "x.css").read_text() == "x"


def test_a_folder_of_results_is_in_no_release(releases, tmp_path):
    copies, _ = releases
    project = copies.project.folder
    for place in (project / "measured" / "raw" / "one", project / "app" / "kept"):
        place.mkdir(parents=True)
        (place / "log.txt").touch()
    (project / "measured" / "run.json").touch()
    copy = copies.add("2")
    assert (copy / "app" / "kept" / "log.txt").is_file()
    assert not (copy / "measured").exists()


def test_another_project_is_copied_whole_with_the_probes_beside_it(releases, tmp_path):
    copies, _ = releases
    theirs, facts = (
        tmp_path / "theirs",
        SimpleNamespace(
            database_files={"default": f"{tmp_path}/theirs/db.sqlite3"}, media_root=f"{tmp_path}/theirs/media"
        ),
    )
    needed = ("manage.py", ".env", "docs/models.py", "deploy/urls.py", "results/tests/__init__.py", "var/x.txt")
    for name in (
        *needed,
        ".git/config",
        "env3/pyvenv.cfg",
        "node_modules/x.js",
        "db.sqlite3",
        "db.sqlite3-wal",
        "media/x.png",
        "measured/run.json",
        "measured/raw/one/log.txt",
    ):
        (theirs / name).parent.mkdir(parents=True, exist_ok=True)
        (theirs / name).write_text("")
    (theirs / "lost").symlink_to("/no/such/file")
    project = SimpleNamespace(overlaid=True, folder=theirs, facts=facts, python=sys.executable)
    copies.project = project
    folder = copies.add("2")
    assert all(
        (folder / name).is_file()
        for name in (*needed, "bench/serve/inside/release.py", "bench/serve/inside/templates/probes/mark.html")
    )
    assert sorted(path.name for path in folder.iterdir() if path.name != "__pycache__") == sorted(
        {name.partition("/")[0] for name in needed} | {"bench"}
    )
    assert not (theirs / "bench").exists()


def test_a_project_that_cannot_be_copied_is_one_line(releases, tmp_path):
    copies, _ = releases
    project = SimpleNamespace(
        overlaid=True, folder=tmp_path / "gone", facts=SimpleNamespace(database_files={}, media_root=None)
    )
    copies.project = project
    with pytest.raises(BenchError, match=r"/gone: cannot be copied into a release: No such file or directory$"):
        copies.add("2")


def test_a_new_release_is_served_only_when_it_is_switched_to(releases):
    copies, _ = releases
    folder = copies.add("2", lambda folder: (folder / "app" / "code.py").write_text("VERSION = 2\n"))
    assert (copies.current / "app" / "code.py").read_text() == "VERSION = 1\n"
    copies.switch(folder)
    assert (copies.current / "app" / "code.py").read_text() == "VERSION = 2\n"
    assert (copies.project.folder / "app" / "code.py").read_text() == "VERSION = 1\n"
    # Compiled, as an installer would.
    assert list((folder / "app" / "__pycache__").glob("code.*.pyc"))


def test_a_release_whose_static_files_cannot_be_collected_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "2"
    folder.mkdir()
    (folder / "manage.py").write_text("raise SystemExit('no settings')\n")
    releases = Releases(kit(), Layout(tmp_path, tmp_path), worker(tmp_path))
    monkeypatch.setattr(
        subprocess, "run", lambda argv, **how: subprocess.CompletedProcess(argv, 1, "", "no settings\n")
    )
    with pytest.raises(BenchError, match="collectstatic of 2 failed: no settings"):
        releases.collect_static(folder)
