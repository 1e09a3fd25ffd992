"""A small Django project that nobody wrote for the kit, made by django-admin, and served with the kit laid over it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench import paths
from bench.machine.ports import free_port
from tests.bench.verify.mutant import started

VIEWS = """
import secrets

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.html import format_html
from django.views.decorators.cache import cache_page

from notes.models import Note

PAGE = "<!doctype html><html><body>{}</body></html>"


def page(text, *values):
    return HttpResponse(format_html(PAGE, format_html(text, *values)))


def home(request):
    here = request.build_absolute_uri()
    return page('<script nonce="{}">1</script><a href="{}">Home</a>', secrets.token_hex(8), here)


def notes(request):
    titles = "; ".join(Note.objects.values_list("title", flat=True))
    return page("<h1>Notes</h1><p>{}</p>", titles)


def subscribe(request):
    return render(request, "subscribe.html")


@login_required
def account(request):
    return page("<p>Signed in as {}.</p>", request.user.get_username())


@cache_page(60)
def leaky(request):
    return page("<p>Signed in as {}.</p>", request.user.get_username() or "nobody")
"""
MODELS = """
from django.db import models


class Note(models.Model):
    title = models.CharField(max_length=100)
"""
URLS = """
from django.contrib.auth.views import LoginView
from django.urls import path

from notes import views

urlpatterns = [
    path("", views.home),
    path("notes/", views.notes),
    path("subscribe/", views.subscribe),
    path("me/", views.account),
    path("leaky/", views.leaky),
    path("sign-in/", LoginView.as_view(template_name="sign_in.html")),
]
"""
FORM = """<!doctype html><html><body>
<form method="post">{% csrf_token %}{{ form.as_p }}<button>Go</button></form>
</body></html>
"""
SETTINGS = """
ALLOWED_HOSTS, DEBUG = ["127.0.0.1"], False
INSTALLED_APPS += ["notes"]
LOGIN_URL, LOGIN_REDIRECT_URL = "/sign-in/", "/me/"
STATIC_ROOT = BASE_DIR / "collected"
SESSION_COOKIE_NAME = "shop_session"
CSRF_COOKIE_NAME = "shop_csrf"
"""
WRITE = "shell -c 'import secrets; from notes.models import Note; Note.objects.create(title=secrets.token_hex(8))'"

DESCRIPTION = """
[tool.benchapp]
public = ["/", "/notes/", "/subscribe/", "/leaky/"]

[tool.benchapp.login]
url = "/sign-in/"
proof = "Signed in as {name}."
page = "/me/"
"""


def environment(folder: Path, *layers: str) -> dict[str, str]:
    """The environment of the project with the kit, its probes and these layers laid over it."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join((str(folder), str(paths.PROJECT))),
        "DJANGO_SETTINGS_MODULE": "bench.inside.serving.settings",
        "OVERLAID_SETTINGS": "shop.settings",
        "BENCHAPP_PROBES": "1",
        # No page expires while a busy machine runs the commands between two requests.
        "BENCHAPP_CACHE_SECONDS": "3600",
        **{f"CACHING_{layer.upper().replace('-', '_')}": "1" for layer in layers},
    }


def make(folder: Path) -> Path:
    """Make the project, its database and its collected files; returns its folder."""
    project = folder / "shop"
    admin = [sys.executable, "-m", "django"]
    run([*admin, "startproject", "shop"], folder)
    run([sys.executable, "manage.py", "startapp", "notes"], project)
    for name, text in (
        ("notes/views.py", VIEWS),
        ("notes/models.py", MODELS),
        ("notes/templates/sign_in.html", FORM),
        ("notes/templates/subscribe.html", FORM),
        ("shop/urls.py", URLS),
    ):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text)
    with (project / "shop" / "settings.py").open("a") as settings:
        settings.write(SETTINGS)
    for words in (["makemigrations", "notes"], ["migrate"], ["collectstatic", "--noinput"]):
        run([sys.executable, "manage.py", *words, "-v", "0"], project, environment(project))
    return project


def run(argv: list[str], folder: Path, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def served(project: Path, *layers: str) -> Iterator[str]:
    """The project served by one process under these layers; its URL."""
    port = free_port()
    argv = [sys.executable, "-m", "gunicorn", "--threads", "16", "--no-control-socket", "--bind", f"127.0.0.1:{port}"]
    url = f"http://127.0.0.1:{port}"
    with started([*argv, "shop.wsgi"], project, environment(project, *layers), project / "server.log", f"{url}/"):
        yield url
