"""A project whose settings name a live PostgreSQL: it is used as it is, and nothing is written to it without leave."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psycopg2
import pytest

from bench.serve.deployment import connections
from bench.serve.deployment.connections import Connections
from bench.serve.project.opened import open_project
from tests.deploy.running import command, runnable
from tests.projects import open_folder, tree, write

SETTINGS = """
DATABASES = {{"default": {{"ENGINE": "django.db.backends.postgresql", "NAME": "{name}", "USER": "{user}",
                         "PASSWORD": "{password}", "HOST": "{host}", "PORT": "{port}"}}}}
"""
URLS = """
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.http import HttpResponse
from django.urls import path

urlpatterns = [
    path("", lambda request: HttpResponse(f"<!doctype html><p>{User.objects.count()} members</p>")),
    path("in/", LoginView.as_view(template_name="in.html")),
]
"""
DESCRIPTION = """
[tool.benchapp]
public = ["/"]

[tool.benchapp.login]
url = "/in/"

[tool.benchapp.write]
command = "shell -c 'from django.contrib.auth.models import User; User.objects.create(username=\\"written\\")'"
page = "/"
"""
# The last serves it once more with a short time to live, on the same database.
CHECKS = ("login", "accounts-apart", "time-to-live")
REFUSED = "it writes to the project's own database: give --allow-writes to allow that, or another --database"


@pytest.fixture
def live(postgresql_database, tmp_path_factory) -> Iterator[tuple[Path, str]]:
    """The project's folder, and the URL of its database."""
    url = urlsplit(postgresql_database)
    place = {"user": url.username, "password": url.password, "host": url.hostname, "port": url.port}
    with open_folder() as parent:
        # The name of the folder is that of what the kit keeps of it.
        settings = SETTINGS.format(name=url.path[1:], **place)
        folder = write(parent / parent.name, tmp_path_factory, settings, DESCRIPTION, URLS)
        subprocess.run([sys.executable, "-B", "manage.py", "migrate", "-v", "0"], cwd=folder, env={}, check=True)
        yield folder, postgresql_database


def rows(url: str) -> dict[str, int]:
    """The number of rows each table ever got, including removed ones."""
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT sequencename, coalesce(last_value, 0) FROM pg_sequences")
        counts = dict(cursor.fetchall())
        cursor.execute("SELECT count(*) FROM django_session")
        return {**counts, "sessions": cursor.fetchone()[0]}


def test_its_connections_are_counted_as_its_settings_name_it(live, own_var):
    folder, url = live
    counted = connections.of_site(open_project(folder), {"DATABASE_URL": ""}, [])
    assert counted is not None
    # Other clients that were there before the site do not count.
    client = partial(psycopg2.connect, url)
    with counted, closing(client()), Connections(url, time.time()) as later, closing(client()):
        assert (counted.count(), later.count()) == (2, 1)


def test_verify_leaves_a_live_database_as_it_is_and_says_so(live):
    folder, url = live
    runnable("gunicorn", "page-cache")
    before, files = rows(url), tree(folder)
    named = [word for name in CHECKS for word in ("--check", name)]
    words = ["--layer", "page-cache", "--project", str(folder), "--set", "processes=1", *named, "--json"]
    done = command("-m", "bench", "verify", "gunicorn", *words, database="postgresql://of/the-shell")
    assert "note: database: the project's own, as it is\n" in done.stderr
    document = json.loads(done.stdout)
    assert "database: the project's own, as it is" in document["notes"]
    assert {item["check"]: item["skipped"] for item in document["outcomes"]} == dict.fromkeys(CHECKS, REFUSED)
    assert (rows(url), tree(folder)) == (before, files)
