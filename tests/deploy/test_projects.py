"""A project as `django-admin startproject` makes it, with a description: served by both kinds of application server, on
both databases, under a cache; its folder stays as it is."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from bench.measure.faults.fault_context import FIRST, Versions
from bench.measure.faults.visitors import parse_page_marker
from bench.serve.deployment import deployment
from bench.serve.deployment.case import must_resolve
from bench.serve.machine.ports import free_port
from bench.serve.project.opened import open_project
from tests.deploy.running import FEW, Up, alive, closed, command, get, runnable
from tests.projects import open_folder, tree
from tests.skips import needs
from tests.waiting import until

DESCRIPTION = """
[tool.benchapp]
health = "/admin/login/"
public = ["/admin/login/"]
setup = ["migrate --noinput --verbosity 0", '''shell -c "
from django.contrib.auth.models import User
for name in ('ann', 'bob'): User.objects.create_superuser(name, password=name)"''']

[tool.benchapp.login]
url = "/admin/login/"
page = "/admin/password_change/"
proof = "<strong>{name}</strong>"
users_env = ["FIRST", "SECOND"]
"""
CHECKS = ("status", "content", "references", "static-content", "redirects", "login", "own-name", "accounts-apart")
ACCOUNTS = {"FIRST": "ann:ann", "SECOND": "bob:bob"}

pytestmark = pytest.mark.servers


@contextlib.contextmanager
def started_project(name: str, description: str) -> Iterator[Path]:
    """A project as Django makes it, with a description."""
    with open_folder() as folder:
        subprocess.run([sys.executable, "-m", "django", "startproject", name, folder], check=True)
        (folder / "pyproject.toml").write_text(description)
        yield folder


@pytest.fixture(scope="module")
def project() -> Iterator[Path]:
    with started_project("shop", DESCRIPTION) as folder:
        yield folder


@pytest.mark.parametrize(
    ("stack", "layer", "database", "checks"),
    [
        ("nginx-gunicorn", "nginx-microcache", "postgresql", (*CHECKS, "ranges", "signed-in-not-kept", "public-pages")),
        # On a copy of SQLite files, as others' projects are.
        pytest.param("uvicorn", "none", "sqlite", (*CHECKS, "odd-cookies"), marks=pytest.mark.matrix),
    ],
)
def test_it_is_served_rightly_and_stays_as_it_was(project, monkeypatch, stack, layer, database, checks):
    runnable(stack, layer)
    if database == "postgresql":
        needs("postgres")
    for name, account in ACCOUNTS.items():
        monkeypatch.setitem(os.environ, name, account)
    before = tree(project)
    few = [word for name, value in FEW.items() for word in ("--set", f"{name}={value}")]
    named = [word for name in checks for word in ("--check", name)]
    words = ["verify", stack, "--layer", layer, "--database", database, "--project", str(project), *few, *named]
    done = command("-m", "bench", *words, timeout_s=300)
    assert done.returncode == 0, done.stdout + done.stderr
    # All of them were made: of the checks that may be left out, each says why.
    left_out = done.stdout.partition("SKIPPED")[2]
    assert not [name for name in CHECKS if f" {name}:" in left_out or f" {name}," in left_out], left_out
    assert tree(project) == before


CACHED = """
import secrets

from django.core.cache import caches
from django.http import HttpResponse
from django.template import engines
from django.urls import path

PAGE = engines["django"].from_string("{% load cache %}{% cache 600 news %}{{ word }}{% endcache %}")


def kind(request):
    alias = "template_fragments" if "template_fragments" in caches.settings else "default"
    return HttpResponse(type(caches[alias]).__name__)


urlpatterns = [
    path("", lambda request: HttpResponse(PAGE.render({"word": secrets.token_hex}))),
    path("kind/", kind),
]
"""
API = """
import re
import secrets

from django.http import HttpResponse, JsonResponse
from django.urls import path


def shown(request, status=200, **_):
    return JsonResponse({"path": request.path}, status=status)


def page(request):
    return HttpResponse("<!doctype html><html><body><p>words</p></body></html>", headers={"ETag": '"a"'})


def minified(get_response):
    def middleware(request):
        response = get_response(request)
        response["Content-Security-Policy"] = f"script-src 'nonce-{secrets.token_hex(8)}'"
        response["X-Request-Id"] = secrets.token_hex(8)
        if response["Content-Type"].startswith("text/html") and not response.streaming:
            response.content = re.sub(rb"\\s+", b" ", response.content)
        return response
    return middleware


urlpatterns = [path("", shown), path("page/", page)]
handler404 = lambda request, exception: shown(request, 404)
handler500 = lambda request: shown(request, 500)
"""
API_SETTINGS = """
INSTALLED_APPS = []
MIDDLEWARE = ["django.middleware.http.ConditionalGetMiddleware", "api.urls.minified"]
"""
# Each fails on a server or layer that is wrong.
API_CHECKS = (
    *("content", "server-error", "head", "conditional", "kept-headers", "headers-kept", "codings"),
    *("set-cookie", "personal-at-once", "cve-2014-0473"),
)
# A page, and an application around Django's with a cookie for each response.
PAGE = """
from django.http import HttpResponse
from django.urls import path

urlpatterns = [path("", lambda request: HttpResponse("<p>page"))]
"""
AROUND = """
import uuid

inside = application


def application(environ, start_response):
    def start(status, headers, *error):
        return start_response(status, [*headers, ("Set-Cookie", f"visit={uuid.uuid4().hex}")], *error)

    return inside(environ, start)
"""
LAYERS = """
[tool.benchapp]
public = ["/"]
layers = ["fragments"]
"""


@pytest.fixture
def fragments_project() -> Iterator[Path]:
    """A project with a cache tag in its template."""
    with started_project("news", LAYERS) as folder:
        (folder / "news" / "urls.py").write_text(CACHED)
        yield folder


def test_fragments_of_the_project_are_stored_in_the_service_of_the_layer(fragments_project):
    """All processes share one memcached; without the layer the project's own cache stays, one for each."""
    needs("memcached")
    opened = open_project(fragments_project)
    for layer, kind in (("none", "LocMemCache"), ("fragments", "PyMemcacheCache")):
        with deployment.deployed(must_resolve(opened, "gunicorn", layer, changes=FEW)) as running:
            assert get(f"{running.url}/kind/").text == kind
            words = {get(f"{running.url}/").text for _ in range(20)}
            assert len(words) == 1 or layer == "none"


@pytest.mark.parametrize(
    ("stack", "layer"),
    [
        ("gunicorn", "varnish"),
        pytest.param("nginx-gunicorn", "nginx-microcache", marks=pytest.mark.matrix),
        pytest.param("nginx-uwsgi", "page-cache", marks=pytest.mark.matrix),
    ],
)
def test_a_cookie_that_is_set_around_django_reaches_one_visitor_only(stack, layer):
    runnable(stack, layer)
    with started_project("shop", '[tool.benchapp]\npublic = ["/"]\n') as folder:
        (folder / "shop" / "urls.py").write_text(PAGE)
        with (folder / "shop" / "wsgi.py").open("a") as wsgi:
            wsgi.write(AROUND)
        with deployment.deployed(must_resolve(open_project(folder), stack, layer, changes=FEW)) as running:
            given = [get(running.url).cookies["visit"] for _ in range(4)]
    assert len(set(given)) == len(given)


def test_an_interface_with_separate_middleware_and_without_sessions_is_right():
    """JSON, headers that are new with each response, an ETag for GET only, and a minifier that changes all bytes."""
    runnable("nginx-gunicorn", "page-cache")
    with started_project("api", '[tool.benchapp]\npublic = ["/", "/page/"]\n') as folder:
        (folder / "api" / "urls.py").write_text(API)
        with (folder / "api" / "settings.py").open("a") as settings:
            settings.write(API_SETTINGS)
        few = [word for name, value in FEW.items() for word in ("--set", f"{name}={value}")]
        named = [word for name in API_CHECKS for word in ("--check", name)]
        words = ["verify", "nginx-gunicorn", "--layer", "page-cache", "--project", str(folder), *few, *named]
        done = command("-m", "bench", *words, timeout_s=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_login_that_fails_is_one_line(project, monkeypatch):
    runnable("gunicorn")
    for name in ACCOUNTS:
        monkeypatch.setitem(os.environ, name, "ann:wrong")
    before = tree(project)
    words = ["verify", "gunicorn", "--layer", "none", "--project", str(project), "--check", "login"]
    done = command("-m", "bench", *words, "--database", "sqlite", "--set", "processes=1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip().splitlines()[-1] == (
        "benchapp verify: the form at /admin/login/ refuses the account of FIRST: correct its NAME:PASSWORD, or make "
        "the account in that database"
    )
    assert tree(project) == before


@pytest.fixture
def served_in_releases(project):
    """The project, served by gunicorn from a release that a new one can replace."""
    case = must_resolve(open_project(project), "gunicorn", changes=FEW)
    with deployment.deployed(case, releases=True) as running:
        yield running


def test_a_new_version_is_served_without_a_change_of_its_folder(project, served_in_releases):
    running, before = served_in_releases, tree(project)
    versions = Versions(running.releases)

    def words(path: str) -> tuple[str, ...]:
        # A worker that ends may reset a connection.
        with contextlib.suppress(httpx2.HTTPError):
            return (parse_page_marker(get(f"{running.url}{path}").text) or ())[:2]
        return ()

    pages = ("/__probe__/visit/x/", "/admin/login/")
    assert [words(path) for path in pages] == [(FIRST, FIRST)] * 2
    versions.switch(versions.new())
    assert running.chain.reload_application()
    until(lambda: [words(path) for path in pages] == [("release-2", "release-2")] * 2, "the new version")
    assert tree(project) == before


def test_interrupted_it_leaves_nothing(project):
    runnable("gunicorn")
    before = tree(project)
    with Up("gunicorn", "--project", str(project)) as up:
        assert get(f"{up.url}admin/login/").status_code == 200
        processes = up.tree()
        folders = {name for each in processes for name in re.findall(r"/tmp/benchapp-[^/]+", " ".join(each.cmdline()))}
        up.process.send_signal(signal.SIGINT)
        up.process.communicate(timeout=60)
        assert up.process.returncode == 0
    assert not alive(processes) and closed(up.url)
    assert folders and not [name for name in folders if Path(name).exists()]
    assert tree(project) == before


def test_accounts_that_are_not_there_are_reported_before_anything_starts(project):
    done = command("-m", "bench", "verify", "gunicorn", "--layer", "none", "--project", str(project))
    assert done.returncode == 2
    message = "benchapp verify: FIRST: not set to NAME:PASSWORD; set it here or in env_file, or leave users_env out of"
    assert done.stderr.strip().splitlines()[-1] == f"{message} pyproject.toml"


def test_a_project_that_cannot_say_that_it_serves_is_refused(project):
    pyproject = project / "pyproject.toml"
    pyproject.write_text(DESCRIPTION.replace('health = "/admin/login/"', 'health = "/admin/"'))
    before = tree(project)
    done = command("-m", "bench", "up", "gunicorn", "--project", str(project))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip().splitlines()[-1] == (
        f"benchapp up: {project}: GET /admin/ redirects to /admin/login/?next=/admin/; name a page that returns "
        'status 200: health = "/admin/login/" in [tool.benchapp] of pyproject.toml'
    )
    assert tree(project) == before


DOWN = """
CACHES = {{"default": {{"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "{place}"}}}}
SESSION_ENGINE = "django.contrib.sessions.backends.cache"
"""


def test_sessions_in_a_redis_that_is_down_are_the_reason_for_what_fails():
    port = free_port()
    urls = "path('in/', admin.site.urls), path('', lambda r: r.session.cycle_key() or HttpResponse('home'))"
    with started_project("shop", "") as folder:
        with (folder / "shop" / "settings.py").open("a") as settings:
            settings.write(DOWN.format(place=f"redis://127.0.0.1:{port}"))
        (folder / "shop" / "urls.py").write_text(
            "from django.contrib import admin\nfrom django.http import HttpResponse\nfrom django.urls import path\n"
            f"urlpatterns = [{urls}]\n"
        )
        for words in (("up", "gunicorn"), ("verify", "gunicorn", "--layer", "none")):
            done = command("-m", "bench", *words, "--project", str(folder))
            assert done.returncode == 2
            assert f"`redis-server --port {port}`" in done.stderr.strip().splitlines()[-1]
