"""The kit's preparation of a project before it is served."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from bench.errors import BenchError
from bench.serve.machine.identity import Identity, worker
from bench.serve.project import commands
from bench.serve.project.opened import open_project


def test_uploaded_files_are_links_and_new_ones_go_beside_them(tmp_path):
    identity = worker(tmp_path)
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    (theirs / "images").mkdir(parents=True)
    (theirs / "images" / "cake.png").write_text("cake")
    facts = SimpleNamespace(media_root=str(theirs))
    project = SimpleNamespace(overlaid=True, facts=facts, media_root=ours)
    commands.link_media(project, identity)
    (ours / "images" / "cake.small.png").write_text("small")
    (theirs / "images" / "bread.png").write_text("bread")
    commands.link_media(project, identity)
    read = {path.name: path.read_text() for path in (ours / "images").iterdir()}
    assert read == {"cake.png": "cake", "cake.small.png": "small", "bread.png": "bread"}
    assert sorted(path.name for path in (theirs / "images").iterdir()) == ["bread.png", "cake.png"]


def test_a_project_without_uploaded_files_has_no_folder_for_them(tmp_path):
    project = SimpleNamespace(overlaid=True, facts=SimpleNamespace(media_root=None), media_root=tmp_path / "ours")
    commands.link_media(project, SimpleNamespace())
    assert not project.media_root.exists()


def test_commands_of_setup_may_write_logs_and_uploads(tmp_path):
    project = SimpleNamespace(overlaid=True, var=tmp_path, media_root=tmp_path / "media")
    commands.make_files(project, worker(tmp_path))
    owner = worker(tmp_path).uid
    assert {(tmp_path / name).stat().st_uid for name in ("files", "media")} == {owner}


ME = Identity("me", os.geteuid(), os.getegid(), ())
READY = """
from django.apps import AppConfig


class Shop(AppConfig):
    name = "shop"

    def ready(self):
        from django.contrib.auth.models import User

        self.users = list(User.objects.all())
"""


@pytest.mark.servers
def test_code_that_reads_rows_while_it_is_loaded_is_reported(new_project, own_var):
    folder = new_project("INSTALLED_APPS.append('shop')")
    subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], cwd=folder, env={}, check=True)
    (folder / "shop" / "apps.py").write_text(READY)
    with pytest.raises(BenchError, match="no such table: auth_user; there are no rows yet: have the code query"):
        commands.collect_static(open_project(folder), ME)


@pytest.mark.servers
def test_a_style_sheet_that_names_a_file_that_is_not_there_is_named(new_project, own_var):
    storage = "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"
    folder = new_project(f"INSTALLED_APPS.append('shop')\nSTORAGES = {{'staticfiles': {{'BACKEND': '{storage}'}}}}")
    (folder / "shop" / "static").mkdir()
    (folder / "shop" / "static" / "site.css").write_text("body {background: url(none.png)}")
    with pytest.raises(BenchError, match=r"failed: site\.css: ValueError: The file 'none\.png' could not be found"):
        commands.collect_static(open_project(folder), ME)
