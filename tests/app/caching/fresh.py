"""A project as `startproject` makes it, with the caching app installed, and commands in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench import paths

URLS = """
import itertools

from django.contrib.auth.models import Group
from django.http import HttpResponse
from django.urls import path

numbers = itertools.count(1)


def home(request):
    names = " ".join(Group.objects.values_list("name", flat=True))
    return HttpResponse(f"<p>rendering {next(numbers)} for {request.user.username}: {names}</p>")


urlpatterns = [path("", home)]
"""
INSTALL = """
INSTALLED_APPS += ["benchapp.caching"]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "benchapp.caching.middleware.CachingMiddleware",
    *MIDDLEWARE[1:],
    "benchapp.caching.middleware.WatchMiddleware",
]
"""
# `get(path, ...)` is a request of a new visitor, `results` is what the test reads.
BEGIN = """
import json, os
import django

django.setup()
from django.core.management import call_command
from django.test import Client
from django.test.utils import setup_test_environment

setup_test_environment()
call_command("migrate", verbosity=0)


def get(path="/", client=None, **more):
    return (client or Client()).get(path, **more)


results = {}
"""


class FreshProject:
    """The project in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        subprocess.run([sys.executable, "-m", "django", "startproject", "fresh", str(folder)], check=True)
        (folder / "fresh/urls.py").write_text(URLS)
        self.settings = (folder / "fresh/settings.py").read_text()

    def run(self, *command: str, settings: str = "") -> subprocess.CompletedProcess[str]:
        """A command of Python in the project, with these lines below its settings and those of the installation."""
        (self.folder / "fresh/settings.py").write_text(f"{self.settings}{INSTALL}{settings}")
        python_path = f"{self.folder}{os.pathsep}{paths.KIT}"
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": python_path, "DJANGO_SETTINGS_MODULE": "fresh.settings"}
        return subprocess.run(
            [sys.executable, *command], cwd=self.folder, env=env, capture_output=True, text=True, check=False
        )

    def results(self, script: str, settings: str = "") -> dict[str, Any]:
        """The value that a script puts into `results`."""
        (self.folder / "db.sqlite3").unlink(missing_ok=True)
        code = f"{BEGIN}\n{script}\nprint(json.dumps(results))"
        done = self.run("-c", code, settings=settings)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
