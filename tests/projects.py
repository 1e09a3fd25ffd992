"""Projects as `django-admin startproject` makes them, for tests of the kit with a project that is not its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import paths
from tests import once

NewProject = Callable[..., Path]

# What a project says that reads its key from a file of variables.
DESCRIPTION = """
[project]
name = "shop"
dependencies = ["Django"]

[tool.benchapp]
env_file = ".env"
health = "/health/"
public = ["/"]
"""
URLS = """
from django.http import HttpResponse
from django.middleware.csrf import get_token
from django.urls import path


def form(request):
    return HttpResponse(get_token(request))


def visits(request):
    request.session["visits"] = request.session.get("visits", 0) + 1
    return HttpResponse("hello")


urlpatterns = [
    path("", lambda request: HttpResponse("home")),
    path("form/", form),
    path("visits/", visits),
    path("who/", lambda request: HttpResponse(str(request.user.is_authenticated))),
]
"""


# Settings and lines of a URL configuration, which names a static file by its hash when it is imported.
HASHED = """
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"},
}
"""
# A cache whose table is in no migration.
CACHE_IN_DATABASE = """
CACHES = {"default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "kept"}}
"""
ICON = "from django.templatetags.static import static\nICON = static('admin/img/search.svg')\n"


@pytest.fixture
def new_project(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> NewProject:
    """A project as `django-admin startproject` makes it, with lines added to its settings."""

    def make(settings: str = "", description: str = "") -> Path:
        return write(tmp_path / "shop", tmp_path_factory, settings, description)

    return make


def write(folder: Path, factory: pytest.TempPathFactory, settings: str, description: str, urls: str = URLS) -> Path:
    """A project as `django-admin startproject` makes it, in that folder, with these files."""
    shutil.copytree(once.shared(factory, "shop", start_project), folder)
    with (folder / "shop" / "settings.py").open("a", encoding="utf-8") as file:
        file.write(f"\nDEBUG = False\nALLOWED_HOSTS = ['127.0.0.1']\n{settings}\n")
    (folder / "shop" / "urls.py").write_text(urls)
    if description:
        (folder / "pyproject.toml").write_text(description)
    return folder


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder outside of pytest's, which is closed to the servers' user. It goes, with what the kit keeps of it."""
    folder = Path(tempfile.mkdtemp(prefix="benchapp-project-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        for path in (folder, *(paths.STATE / "projects").glob(f"{folder.name}-*")):
            shutil.rmtree(path)


def start_project(folder: Path) -> None:
    folder.mkdir()
    subprocess.run([sys.executable, "-m", "django", "startproject", "shop", folder], check=True)


@pytest.fixture
def own_var(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kit's files about projects are removed with the test."""
    monkeypatch.setattr(paths, "STATE", tmp_path / "var")


def tree(folder: Path) -> dict[str, bytes]:
    """Every file of a project with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
