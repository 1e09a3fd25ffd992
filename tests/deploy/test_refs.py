"""`run --ref`: commits of a project beside each other, on the same rows."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from bench import paths
from tests.deploy.running import command

pytestmark = pytest.mark.servers
# The machine may be busy with other tests.
GUARDS = [word for name in ("interference", "drift", "tool") for word in ("--guard", f"{name}=off")]
RUN = ("--layer", "none", "--rounds", "1", "--duration", "1", "--connections", "2", *GUARDS)
URLS = """
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.urls import path


def home(request):
    return HttpResponse(f"<html><body><p>{{User.objects.count()}} {word}</p></body></html>")


urlpatterns = [path("", home)]
"""
MIGRATION = """
from django.db import migrations


def add(apps, schema_editor):
    apps.get_model("auth", "User").objects.create(username="made by the second commit")


class Migration(migrations.Migration):
    dependencies = [("auth", "0012_alter_user_first_name_max_length")]
    operations = [migrations.RunPython(add)]
"""


@pytest.fixture
def shop(tmp_path):
    """A project of two commits, the second of which has a migration; its database has been migrated to the first."""
    folder = tmp_path / "shop"
    folder.mkdir()

    env = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}

    def run(*words):
        subprocess.run(words, cwd=folder, env=env, check=True, capture_output=True)

    def commit(message):
        run("git", "add", ".")
        who = ["-c", "user.name=tests", "-c", "user.email=tests@example.org"]
        run("git", *who, "commit", "--quiet", f"--message={message}")

    run(str(paths.VENV / "bin" / "django-admin"), "startproject", "shop", ".")
    run("git", "init", "--quiet", "--initial-branch=main")
    (folder / ".gitignore").write_text("db.sqlite3\n__pycache__/\n")
    (folder / "shop" / "urls.py").write_text(URLS.format(word="users"))
    run(str(paths.VENV / "bin" / "python"), "manage.py", "migrate", "--verbosity", "0")
    commit("First")
    (folder / "shop" / "urls.py").write_text(URLS.format(word="people"))
    (folder / "shop" / "migrations").mkdir()
    (folder / "shop" / "migrations" / "__init__.py").touch()
    (folder / "shop" / "migrations" / "0001_user.py").write_text(MIGRATION)
    settings = folder / "shop" / "settings.py"
    settings.write_text(settings.read_text() + 'INSTALLED_APPS += ["shop"]\n')
    commit("Second")
    (folder / "notes.txt").touch()
    return folder


def test_each_commit_is_a_case_that_fails_if_its_pages_must_not_differ(shop, tmp_path):
    before, output = sorted(path.name for path in shop.iterdir()), tmp_path / "run"
    refs = [word for name in ("main~1", "HEAD~1", "main") for word in ("--ref", name)]
    argv = ["-m", "bench", "run", "gunicorn", "--project", str(shop), *refs, "--same-responses", *RUN]
    done = command(*argv, "--output", str(output))
    assert done.returncode == 1, done.stdout + done.stderr

    trials = [json.loads(line) for line in (output / "trials.jsonl").read_text("utf-8").splitlines()]
    statuses = {trial["stack"]: trial["status"] for trial in trials}
    assert statuses == {"gunicorn@ref=main-1": "ok", "gunicorn@ref=HEAD-1": "ok", "gunicorn@ref=main": "failed"}
    notes = json.loads((output / "run.json").read_text("utf-8"))["notes"]
    (difference,) = [note for note in notes if note.startswith("/ differs: main-1 has ")]
    # The migration of the second commit was made on its own copy of the rows.
    assert "0 users" in difference and "1 people" in difference
    assert {trial["reason"] for trial in trials if trial["status"] == "failed"} == {difference}
    assert "1 file is changed or new and in no commit: --ref . has them" in notes
    # Commits with the same pages make as many queries.
    assert "main-1 -> HEAD-1" in done.stdout and "1 -> 1" in done.stdout
    assert sorted(path.name for path in shop.iterdir()) == before
