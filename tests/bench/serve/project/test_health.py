"""A project that cannot say that it serves is refused before anything starts."""

import json
import os
import re
from types import SimpleNamespace

import pytest

from bench.errors import BenchError
from bench.serve.machine.identity import Identity
from bench.serve.machine.ports import free_port
from bench.serve.project import commands, health, inspection
from bench.serve.project.description import Description, Login
from bench.serve.project.inspection import InspectedPage
from bench.serve.project.opened import open_project

GOOD = {"status": 200, "content_type": "text/html", "body": ""}
TO_LOGIN = {**GOOD, "status": 302, "location": "/login/?next=/"}
MEMORY = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
BROKEN = {**GOOD, "status": 500, "error": "KeyError: 'x' (shop/views.py:7)"}


def findings(monkeypatch, pages, migrations_left=0, urls=(), **fields):
    """The findings if Django renders these pages, and others well."""

    def manage(_, words, *more, **named):
        return "the project prints this\n" + json.dumps(
            {path: pages.get(path, GOOD) for path in words if path.startswith("/")}
        )

    monkeypatch.setattr(commands, "manage", manage)
    monkeypatch.setattr(commands, "site_environment", lambda *_: {})
    facts = SimpleNamespace(migrations_left=migrations_left, urls=urls, pages=(), rows_as_served=True, start="/")
    facts.cache_servers, facts.commands = {}, ("compress",)
    described = Description(**fields)
    paths = {
        "health": described.health,
        "ready": described.health,
        "description": described,
        "once": lambda _, compute: compute(),
    }
    project = SimpleNamespace(folder="/srv/shop", recorded="x", overlaid=True, var=None, facts=facts, **paths)
    return health.require(project, "sqlite:///x", {}, SimpleNamespace())


@pytest.mark.parametrize(
    ("pages", "more", "message"),
    [
        (
            {"/": {**GOOD, "status": 302, "location": "/en/"}},
            {},
            'GET / redirects to /en/; name a page that returns status 200: health = "/en/" in ',
        ),
        ({"/": {**GOOD, "error": "its stream does not end"}}, {}, "GET / returns status 200: its stream does"),
        ({"/": TO_LOGIN}, {}, 'name a page that returns status 200: health = "/login/" in '),
        ({"/": {**GOOD, "status": 403}}, {}, "GET / returns status 403; its code refuses visitors from this "),
        ({"/": {**GOOD, "status": 404}}, {}, "GET / returns status 404; name a page that returns status 200"),
        ({"/": BROKEN}, {}, r"GET / returns status 500: KeyError: 'x' \(shop/views.py:7\); correct the page, "),
        (
            {"/": {**BROKEN, "error": "OperationalError: no such table: shop (shop/views.py:7)"}},
            {"migrations_left": 3},
            "3 migrations are not applied to its database: run ./manage.py migrate",
        ),
        ({"/a/": BROKEN}, {"public": ("/a/",)}, "GET /a/ returns status 500: KeyError: 'x'"),
        (
            {"/": {**BROKEN, "error": 'OfflineGenerationError: run "python manage.py compress"'}},
            {},
            re.escape('make what it needs: build = ["compress"] in [tool.benchapp]'),
        ),
    ],
)
def test_it_is_reported_in_one_line(monkeypatch, pages, more, message):
    with pytest.raises(BenchError, match=message):
        findings(monkeypatch, pages, **more)


@pytest.mark.parametrize("status", [200, 204])
def test_any_status_of_success_is_that_of_a_site_that_serves(monkeypatch, status):
    assert findings(monkeypatch, {"/up/": {**GOOD, "status": status}}, health="/up/") == ()


def test_what_nobody_has_named_is_a_note(monkeypatch):
    (note,) = findings(monkeypatch, {"/": BROKEN}, health="/up/")
    assert note == "GET / returns status 500: KeyError: 'x' (shop/views.py:7)"
    assert findings(monkeypatch, {"/": {**GOOD, "status": 404}}, health="/up/") == ()


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (TO_LOGIN, 'GET / redirects to /login/?next=/; describe the login, and .* url = "/login/", '),
        ({**GOOD, "status": 403}, "GET / returns status 403; its code refuses visitors from this machine, "),
        # It has such a page, for another host.
        ({**GOOD, "status": 404}, "GET / returns status 404; its code refuses visitors from this machine, "),
        (
            {**GOOD, "status": 301, "location": "https://shop.example/"},
            "GET / redirects to https://shop.example/; its code refuses visitors from this machine, ",
        ),
    ],
)
def test_a_home_page_that_is_not_for_the_visitors_of_a_measurement_is_a_note(monkeypatch, page, message):
    (note,) = findings(monkeypatch, {"/": page}, urls=("/",), health="/up/")
    assert re.match(message.replace("?", "[?]"), note)
    assert findings(monkeypatch, {"/": {**GOOD, "status": 302, "location": "/en/"}}, health="/up/") == ()
    assert findings(monkeypatch, {"/": TO_LOGIN}, health="/up/", login=Login("/login/")) == ()


def test_a_public_page_that_is_not_there_is_a_note(monkeypatch):
    """Pages below it may be there."""
    (note,) = findings(monkeypatch, {"/a/": {**GOOD, "status": 404}}, public=("/a/",), health="/up/")
    assert note == "GET /a/ returns status 404"


@pytest.mark.parametrize(
    ("status", "location", "its_rows", "refused", "build"),
    # On other rows than those that it was looked at with, a page may be there.
    [
        (404, None, True, True, ()),
        (404, None, False, False, ()),
        (302, "/en/", False, True, ()),
        (200, None, True, False, ()),
        (500, None, True, True, ()),
        # Nor is what these commands make there yet.
        (500, None, True, False, ("compress",)),
    ],
)
def test_a_page_that_was_looked_at_is_refused_before_a_run_is_planned(status, location, its_rows, refused, build):
    page = InspectedPage("/", status, location, None, None, (), False, False, 0)
    facts = SimpleNamespace(pages=(page,), migrations_left=0, urls=(), start="/")
    project = SimpleNamespace(folder="x", overlaid=True, health="/", facts=facts, description=Description(build=build))
    if refused:
        with pytest.raises(BenchError):
            health.require_page(project, its_rows)
    else:
        health.require_page(project, its_rows)


def test_caches_of_this_machine_that_are_down_are_named_with_a_command_that_starts_them(new_project, own_var):
    """Another cache stands in for one of another machine."""
    port = free_port()
    backends = {"redis": "redis.RedisCache", "memcached": "memcached.PyMemcacheCache"}
    places = {
        "redis": {
            "default": f"redis://:secret@127.0.0.1:{port}/1",
            "numbered": f"redis://127.0.0.1:{port}?db=1",
            "socket": "unix:///nowhere/redis.sock?db=1",
        },
        "memcached": {
            "kept": f"127.0.0.1:{port}",
            "pages": "unix:/nowhere/cached.sock",
            "far": "cache.example:11211",
            "nowhere": [],
        },
    }
    caches = {}
    for kind, of_kind in places.items():
        for alias, place in of_kind.items():
            caches[alias] = {"BACKEND": f"django.core.cache.backends.{backends[kind]}", "LOCATION": place}
    used = "SESSION_ENGINE = 'django.contrib.sessions.backends.cached_db'"
    project = open_project(new_project(f"CACHES = {caches}\n{used}"))

    lines = health.silent_caches(project)
    commands_named = {name: line.split("`")[1] for name, line in lines.items()}
    assert commands_named == {
        "CACHES['default']": f"redis-server --port {port}",
        "CACHES['numbered']": f"redis-server --port {port}",
        "CACHES['socket']": "redis-server --unixsocket /nowhere/redis.sock",
        "CACHES['kept']": f"memcached -p {port}",
        "CACHES['pages']": "memcached -s /nowhere/cached.sock",
    }
    with pytest.raises(BenchError, match=re.escape(lines["CACHES['default']"])):
        health.require_sessions(project)
    assert not [line for line in lines.values() if "secret" in line or "\n" in line]


def test_only_a_cache_with_the_sessions_stops_a_verification(new_project, own_var):
    here = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": f"redis://127.0.0.1:{free_port()}"}
    project = open_project(new_project(f"CACHES = {{'default': {MEMORY}, 'pages': {here}}}"))
    health.require_sessions(project)
    assert list(health.silent_caches(project)) == ["CACHES['pages']"]


MAKES = """
from django.conf import settings
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    def handle(self, **options):
        with open(settings.STATIC_ROOT + "/made.txt", "w") as file:
            file.write("made")
"""
READS = """
def made(request):
    from django.conf import settings

    return HttpResponse(open(settings.STATIC_ROOT + "/made.txt").read())


urlpatterns[0] = path("", made)
"""


@pytest.mark.servers
def test_what_a_page_lacks_is_named_and_a_command_of_build_makes_it(new_project, own_var):
    folder = new_project("INSTALLED_APPS.append('shop')\nSTATIC_ROOT = str(BASE_DIR / 'collected')")
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write(READS)
    commands = folder / "shop" / "management" / "commands"
    commands.mkdir(parents=True)
    (commands / "makefile.py").write_text(MAKES)
    line = (folder / "shop" / "urls.py").read_text().splitlines().index(READS.strip().splitlines()[3]) + 1
    with pytest.raises(BenchError, match=rf"GET / returns status 500: FileNotFoundError: .* \(shop/urls.py:{line}\); "):
        served(folder)
    (folder / "pyproject.toml").write_text('[tool.benchapp]\nbuild = ["makefile"]\n')
    assert served(folder) == ()
    assert not (folder / "collected").exists()


HANGS = "import time\ndef hangs(request): time.sleep(600)\n"
HANGS_IN_A_THREAD = "import asyncio\nasync def hangs(request): await asyncio.sleep(600)\n"


@pytest.mark.servers
@pytest.mark.parametrize("view", [HANGS, HANGS_IN_A_THREAD])
def test_a_page_that_never_responds_is_not_waited_for(view, new_project, own_var, monkeypatch):
    folder = new_project(description='[tool.benchapp]\nhealth = "/form/"\n')
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write(f"{view}urlpatterns[0] = path('', hangs)\n")
    monkeypatch.setattr(inspection, "PAGE_TIMEOUT_S", 2)
    (note,) = served(folder, collects=False)
    assert note.startswith("GET / returns status 500: NoResponse: not within 2 s")


@pytest.mark.servers
def test_a_page_may_renew_a_session_that_is_in_a_cache(new_project, own_var):
    folder = new_project("SESSION_ENGINE = 'django.contrib.sessions.backends.cache'")
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write("urlpatterns[0] = path('', lambda r: r.session.cycle_key() or HttpResponse('home'))\n")
    assert served(folder, collects=False) == ()


THEIRS = """
from django.core.files.storage import Storage


class Bucket(Storage):
    def _save(self, name, content):
        raise RuntimeError("written to production")

    exists = _save
"""


@pytest.mark.servers
def test_static_files_go_to_no_storage_elsewhere(new_project, own_var):
    backend = '{"BACKEND": "shop.bucket.Bucket"}'
    folder = new_project(f'STORAGES = {{"default": {backend}, "staticfiles": {backend}}}')
    (folder / "shop" / "bucket.py").write_text(THEIRS)
    assert served(folder) == ()
    assert open_project(folder).facts.remote_storages == ("default", "staticfiles")


def served(folder, collects=True):
    """Notes on a project before anything starts, by default with collected static files."""
    project = open_project(folder)
    identity = Identity("me", os.geteuid(), os.getegid(), ())
    if collects:
        commands.collect_static(project, identity)
    return health.require(project, "sqlite:///:memory:", {}, identity)
