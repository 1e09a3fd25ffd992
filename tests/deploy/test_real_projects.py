"""Projects of others: Wagtail's, and one whose accounts and forms are django-allauth's. They are served rightly by
servers of different kinds, the second on both databases, and their folders stay as they are."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import paths
from tests import once
from tests.deploy.running import FEW, command, runnable
from tests.projects import open_folder, tree
from tests.skips import needs

pytestmark = pytest.mark.servers

CHECKS = (
    *("status", "content", "references", "static-content", "redirects", "login", "own-name", "accounts-apart"),
    *("interpreter", "told-of-commands", "set-cookie", "personal-at-once", "upload"),
)
PROGRAMS = Path(f"{paths.VENV}-projects", "bin")
WAGTAIL = '''
[tool.benchapp]
python = "{python}"
public = ["/", "/search/"]

[tool.benchapp.login]
url = "/admin/login/"
page = "/admin/account/"
superuser = true

[tool.benchapp.stale]
"wagtailcore.Page" = ["/*"]

[tool.benchapp.write]
command = """shell -c "
from secrets import token_hex; from home.models import HomePage
page = HomePage.objects.get(); page.title = token_hex(8); page.save()
" """
page = "/"
'''
ALLAUTH = '''
[tool.benchapp]
python = "{python}"
public = ["/", "/feedback/"]
setup = ["migrate --noinput --verbosity 0"]

[tool.benchapp.login]
url = "/accounts/login/"
page = "/profile/"
proof = "You are {{name}}."

[tool.benchapp.stale]
"auth.Group" = ["/"]

[tool.benchapp.write]
command = """shell -c "
from secrets import token_hex; from django.contrib.auth.models import Group; Group.objects.create(name=token_hex(8))
" """
page = "/"
'''
SETTINGS = """
INSTALLED_APPS += ["django.contrib.sites", "allauth", "allauth.account"]
MIDDLEWARE += ["allauth.account.middleware.AccountMiddleware"]
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend", "allauth.account.auth_backends.AuthenticationBackend"
]
SITE_ID = 1
LOGIN_REDIRECT_URL = "/profile/"
# All visitors of a verification come from one address.
ACCOUNT_RATE_LIMITS = False
"""
URLS = """
from django import forms
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import Group
from django.http import HttpResponse
from django.shortcuts import redirect
from django.template import engines
from django.urls import include, path

PAGE = engines["django"].from_string(
    "<!doctype html><title>Feedback</title><form method=post>{% csrf_token %}{{ form }}<button>Send</button></form>"
)


class Feedback(forms.Form):
    text = forms.CharField()


def feedback(request):
    form = Feedback(request.POST or None)
    return redirect("/") if form.is_valid() else HttpResponse(PAGE.render({"form": form}, request))


def home(request):
    return HttpResponse(f"<!doctype html><title>Club</title>{Group.objects.count()} <a href=/feedback/>Feedback</a>")


@login_required
def profile(request):
    return HttpResponse(f"<!doctype html><title>Profile</title>You are {request.user.username}.")


urlpatterns = [
    path("", home),
    path("feedback/", feedback),
    path("profile/", profile),
    path("accounts/", include("allauth.urls")),
]
"""


@contextmanager
def copied(project: Path) -> Iterator[Path]:
    """A copy of a project that the servers' user can read."""
    with open_folder() as folder:
        shutil.copytree(project, folder, dirs_exist_ok=True)
        folder.chmod(0o755)
        yield folder


def run(*words: object, folder: Path | None = None) -> None:
    # Without the settings of these tests.
    env = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([PROGRAMS / words[0], *words[1:]], cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)


def wagtail(folder: Path) -> None:
    """As `wagtail start` makes it: Vary: Cookie on every page, an admin for superusers."""
    folder.mkdir()
    run("wagtail", "start", "gallery", folder)
    run("python", "manage.py", "migrate", "--verbosity", "0", folder=folder)
    (folder / "pyproject.toml").write_text(WAGTAIL.format(python=PROGRAMS / "python"))


def allauth(folder: Path) -> None:
    """As `startproject` makes it, with django-allauth's accounts, a form for everybody and a page for members."""
    folder.mkdir()
    run("django-admin", "startproject", "club", folder)
    with (folder / "club" / "settings.py").open("a", encoding="utf-8") as settings:
        settings.write(SETTINGS)
    (folder / "club" / "urls.py").write_text(URLS)
    (folder / "pyproject.toml").write_text(ALLAUTH.format(python=PROGRAMS / "python"))


@pytest.mark.parametrize(
    ("make", "stack", "layer", "database"),
    [
        pytest.param(wagtail, "granian", "varnish", "sqlite", marks=pytest.mark.matrix),
        # Its settings have SecurityMiddleware behind all that sets cookies.
        (wagtail, "nginx-uwsgi", "staticgenerator", "sqlite"),
        (allauth, "apache-modwsgi", "page-cache", "sqlite"),
        pytest.param(allauth, "nginx-uwsgi", "staticgenerator", "postgresql", marks=pytest.mark.matrix),
    ],
)
def test_it_is_served_rightly_and_stays_as_it_was(make, stack, layer, database, tmp_path_factory):
    runnable(stack, layer)
    if database == "postgresql":
        needs("postgres")
    if not (PROGRAMS / "wagtail").exists():
        pytest.skip("program not installed: wagtail")
    with copied(once.shared(tmp_path_factory, make.__name__, make)) as folder:
        before = tree(folder)
        few = [word for name, value in FEW.items() for word in ("--set", f"{name}={value}")]
        named = [word for name in (*CHECKS, "public-pages") for word in ("--check", name)]
        words = ["verify", stack, "--layer", layer, "--database", database, "--project", str(folder), *few, *named]
        done = command("-m", "bench", *words, timeout_s=300)
        assert done.returncode == 0, done.stdout + done.stderr
        assert not any(f" {name}" in done.stdout.partition("SKIPPED")[2] for name in ("own-name", "told-of-commands"))
        assert tree(folder) == before
