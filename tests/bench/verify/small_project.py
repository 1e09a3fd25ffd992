"""A small Django project, not written for the kit: made by django-admin, and served with the kit laid over it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import paths
from bench.serve.machine.ports import free_port
from tests import once
from tests.bench.verify.mutant import started
from tests.projects import start_project

# Its notes are the names of groups, a table in every such project.
URLS = """
import secrets

from django.contrib import admin
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import Group
from django.contrib.auth.views import LoginView
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils.html import format_html
from django.views.decorators.cache import cache_page

PAGE = "<!doctype html><html><body>{}</body></html>"


def page(text, *values):
    return HttpResponse(format_html(PAGE, format_html(text, *values)))


def home(request):
    here = request.build_absolute_uri()
    return page('<script nonce="{}">1</script><a href="{}">Home</a>', secrets.token_hex(8), here)


def notes(request):
    return page("<h1>Notes</h1><p>{}</p>", "; ".join(Group.objects.values_list("name", flat=True)))


@login_required
def account(request):
    return page("<p>Signed in as {}.</p>", request.user.get_username())


@cache_page(60)
def leaky(request):
    return page("<p>Signed in as {}.</p>", request.user.get_username() or "nobody")


def unlimited(request):
    return render(request, "form.html", {"form": AuthenticationForm()})


urlpatterns = [
    path("", home),
    path("staff/", admin.site.urls),
    path("unlimited/", unlimited),
    path("notes/", notes),
    path("subscribe/", lambda request: render(request, "form.html")),
    path("me/", account),
    path("leaky/", leaky),
    path("sign-in/", LoginView.as_view(template_name="form.html")),
]
"""
FORM = """<!doctype html><html><body>
<form method="post">{% csrf_token %}{{ form.as_p }}<button>Go</button></form>
</body></html>
"""
SETTINGS = """
ALLOWED_HOSTS, DEBUG = ["127.0.0.1"], False
TEMPLATES[0]["DIRS"] = [BASE_DIR]
LOGIN_URL, LOGIN_REDIRECT_URL = "/sign-in/", "/me/"
STATIC_ROOT = BASE_DIR / "collected"
SESSION_COOKIE_NAME = "shop_session"
CSRF_COOKIE_NAME = "shop_csrf"
INSTALLED_APPS.append("benchapp.login_limit")
MIDDLEWARE.append("benchapp.login_limit.middleware.too_many_failed_logins")
AUTHENTICATION_BACKENDS = [
    "benchapp.login_limit.backends.LimitBackend",
    "django.contrib.auth.backends.ModelBackend",
]
"""
WRITE = (
    "shell -c 'import secrets; from django.contrib.auth.models import Group; "
    "Group.objects.create(name=secrets.token_hex(8))'"
)


def environment(folder: Path, *layers: str) -> dict[str, str]:
    """The environment of the project with the kit, its probes and these layers laid over."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join((str(folder), str(paths.KIT))),
        "DJANGO_SETTINGS_MODULE": "bench.serve.inside.serving.settings",
        "OVERLAID_SETTINGS": "shop.settings",
        "BENCHAPP_PROBES": "1",
        # No page expires while a busy machine runs the commands between two requests.
        "BENCHAPP_CACHE_SECONDS": "3600",
        **{f"CACHING_{layer.upper().replace('-', '_')}": "1" for layer in layers},
    }


def make(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the project, its database and its collected files; returns its folder."""
    original = once.shared(tmp_path_factory, "shop", start_project)
    project = Path(shutil.copytree(original, tmp_path_factory.mktemp("project") / "shop"))
    (project / "shop" / "urls.py").write_text(URLS)
    (project / "form.html").write_text(FORM)
    with (project / "shop" / "settings.py").open("a") as settings:
        settings.write(SETTINGS)
    for words in (["migrate"], ["collectstatic", "--noinput"]):
        argv = [sys.executable, "manage.py", *words, "-v", "0"]
        done = subprocess.run(argv, cwd=project, env=environment(project), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return project


@contextlib.contextmanager
def served(project: Path, *layers: str) -> Iterator[str]:
    """The project served by one process under these layers; its URL."""
    port = free_port()
    argv = [sys.executable, "-m", "gunicorn", "--threads", "16", "--no-control-socket", "--bind", f"127.0.0.1:{port}"]
    url = f"http://127.0.0.1:{port}"
    with started([*argv, "shop.wsgi"], project, environment(project, *layers), project / "server.log", f"{url}/"):
        yield url
