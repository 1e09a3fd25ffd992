"""A project as its own interpreter sees it; nothing of it changes."""

import json
import re
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import django
import psycopg2.extensions
import pytest

from bench import paths
from bench.errors import BenchError
from bench.serve.machine.ports import free_port
from bench.serve.project import description, inspection, run_command
from bench.serve.project.environments import INSTALL_OF_KIT
from tests.projects import HASHED, ICON, tree

# Each starts another interpreter.
pytestmark = pytest.mark.servers

IN_MEMORY = """
_sqlite = "django.db.backends.sqlite3"
DATABASES["cached"] = {"ENGINE": _sqlite, "NAME": ":memory:"}
DATABASES["shared"] = {"ENGINE": _sqlite, "NAME": "file:pages?mode=memory&cache=shared"}
"""
WRITES_FILES = """
LOGGING = {"version": 1, "handlers": {"mine": {"class": "logging.FileHandler", "filename": BASE_DIR / "site.log"}},
           "root": {"handlers": ["mine"], "level": "DEBUG"}}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": BASE_DIR / "c"}}
HUEY = {"huey_class": "huey.SqliteHuey", "filename": BASE_DIR / "tasks.sqlite3"}
"""
LOGS = """
from django.conf import settings
if settings.HUEY["huey_class"] == "huey.SqliteHuey":
    settings.HUEY["filename"].touch()


def logs(request):
    import logging

    from django.core.cache import cache

    logging.getLogger("shop").warning("seen")
    cache.set("seen", 1)
    return HttpResponse(str(cache.get("seen")))


urlpatterns.append(path("logs/", logs))
"""
PUBLIC = '[tool.benchapp]\npublic = ["/form/", "/visits/", "/who/", "/nowhere/"]\n'


def test_pages_are_requested_as_an_anonymous_visitor_gets_them_and_nothing_changes(new_project):
    # Hosts that come from a variable which is not set.
    theirs = "SESSION_ENGINE = 'django.contrib.sessions.backends.signed_cookies'\nALLOWED_HOSTS = [None, '']"
    folder = new_project(theirs, PUBLIC)
    before = tree(folder)
    facts = inspection.inspect(description.read(folder))
    home, form, visits, who, nowhere = facts.pages
    assert (home.status, home.vary, home.cookies, home.session_read) == (200, None, (), False)
    lines = (folder / "shop" / "urls.py").read_text().splitlines()

    def line(text):
        return f"shop/urls.py:{next(number for number, content in enumerate(lines, 1) if text in content)}"

    assert (form.cookies, form.causes["csrftoken"]) == (("csrftoken",), line("HttpResponse(get_token(request))"))
    assert (visits.session_written, visits.cookies) == (True, ("sessionid",))
    assert visits.causes["session"] == line('request.session["visits"]')
    assert (who.session_read, who.vary, who.cookies) == (True, "Cookie", ())
    assert who.causes["session"] == line("is_authenticated")
    assert nowhere.status == 404
    # No setting names the second: `startproject` writes it beside the first.
    assert facts.application == {"wsgi": "shop.wsgi:application", "asgi": "shop.asgi:application"}
    assert not facts.debug and not facts.allowed_hosts
    assert "127.0.0.1" in facts.local_hosts and facts.public_hosts == ()
    assert facts.migrations_left
    assert "/visits/" in facts.urls
    assert tree(folder) == before, "a file of the project changed"


def test_a_template_with_a_syntax_error_is_named_with_its_line(new_project):
    folder = new_project("TEMPLATES[0]['DIRS'] = [BASE_DIR / 'templates']")
    (folder / "templates").mkdir()
    (folder / "templates" / "base.html").write_text("{% block main %}{% endblock %}")
    (folder / "templates" / "404.html").write_text(
        "{% extends 'base.html' %}\n{% block main %}\n{{ x|add }}{% endblock %}"
    )
    (unknown,) = [
        page for page in inspection.inspect(description.read(folder), closely=True).pages if page.status == 500
    ]
    assert (unknown.path, unknown.cause_of_error) == ("/no/such/page/", "404.html:3")


def test_a_template_that_makes_a_page_vary_is_named_with_its_line(new_project):
    folder = new_project("TEMPLATES[0]['DIRS'] = [BASE_DIR / 'pages']", '[tool.benchapp]\npublic = ["/account/"]\n')
    (folder / "pages").mkdir()
    base = "<p>\n{% if user.is_authenticated %}me{% endif %}{% block form %}{% endblock %}"
    (folder / "pages" / "base.html").write_text(base)
    form = "{% extends 'base.html' %}\n\n{% block form %}{% csrf_token %}{% endblock %}"
    (folder / "pages" / "form.html").write_text(form)
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write("from django.shortcuts import render\n")
        urls.write("urlpatterns.append(path('account/', lambda request: render(request, 'form.html')))\n")
    page = next(it for it in inspection.inspect(description.read(folder)).pages if it.path == "/account/")
    assert (page.causes["session"], page.causes["csrftoken"]) == ("base.html:2", "form.html:3")


PAGINATED = """
urlpatterns.append(path("list/", lambda request: HttpResponse('<a href="?page=2">2</a> <a href="/form/?next=/">')))
"""


def test_parameters_in_links_of_a_page_are_known_with_the_settings_of_the_page_cache(new_project):
    folder = new_project("CACHING_QUERY = ['page']", '[tool.benchapp]\npublic = ["/list/"]\n')
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write(PAGINATED)
    facts = inspection.inspect(description.read(folder))
    page = next(it for it in facts.pages if it.path == "/list/")
    assert page.linked_parameters == {"/list/": ("page",), "/form/": ("next",)}
    assert facts.settings["CACHING_QUERY"] == ["page"]


CACHED_VIEWS = """
from django.views.decorators.cache import cache_control, cache_page
from django.views.decorators.vary import vary_on_cookie, vary_on_headers


def mine(request):
    return HttpResponse(request.user.get_username())


def themed(request):
    return HttpResponse(request.COOKIES.get("theme", "light"))


def office(request):
    return HttpResponse("inside" if request.META["REMOTE_ADDR"] == "10.0.0.1" else "outside")


def agent(request):
    return HttpResponse(request.headers.get("User-Agent", ""))


def plain(request):
    return HttpResponse(f"the same for everybody at {request.build_absolute_uri()}")


urlpatterns += [
    path("mine/", cache_page(60)(mine)),
    path("office/", cache_page(60)(office)),
    path("agent/", cache_page(60)(agent)),
    path("agents/", cache_page(60)(vary_on_headers("User-Agent")(agent))),
    path("uncached-office/", office),
    path("themed/", cache_page(60)(themed)),
    path("varied/", cache_page(60)(vary_on_cookie(mine))),
    path("private/", cache_page(60)(cache_control(private=True)(mine))),
    path("plain/", cache_page(60)(plain)),
    path("uncached/", mine),
]

from django.template import Context, Engine

PART = "{%% load cache %%}{{ user.is_staff }}{{ request.COOKIES.theme }}{%% cache 60 part %s %%}%s{%% endcache %%}"


def of_part(text, named=""):
    template = Engine(libraries={"cache": "django.templatetags.cache"}).from_string(PART % (named, text))
    return lambda request: HttpResponse(template.render(Context({"request": request, "user": request.user})))


urlpatterns += [
    path("draft/", of_part("{% if user.is_staff %}draft{% endif %}")),
    path("cart/", of_part("{{ request.session.cart }}")),
    path("theme-part/", of_part("{{ request.COOKIES.theme }}")),
    path("agent-part/", of_part("{{ request.META.HTTP_USER_AGENT }}")),
    path("named-part/", of_part("{{ user.username }}", "user.pk")),
    path("plain-part/", of_part("the same for everybody")),
]
"""

SEEN = """
def seen(get_response):
    def middleware(request):
        request.seen_by = (request.META["REMOTE_ADDR"], request.headers.get("User-Agent"))
        return get_response(request)
    return middleware
"""


def test_a_view_that_django_s_cache_gives_to_others_is_found(new_project):
    pages_shared = {"/mine/", "/themed/", "/office/", "/agent/"}
    parts_shared = {"/draft/", "/cart/", "/theme-part/", "/agent-part/"}
    right = ["/varied/", "/private/", "/plain/", "/uncached/", "/named-part/", "/plain-part/"]
    right += ["/agents/", "/uncached-office/"]
    public = [*pages_shared, *parts_shared, *right]
    # No page depends on what this middleware reads.
    folder = new_project("MIDDLEWARE += ['shop.seen.seen']", f"[tool.benchapp]\npublic = {json.dumps(public)}\n")
    (folder / "shop" / "seen.py").write_text(SEEN)
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write(CACHED_VIEWS)
    pages = inspection.inspect(description.read(folder)).pages
    assert {page.path for page in pages if page.shared} == pages_shared
    assert {page.path for page in pages if page.shared_part} == parts_shared
    (mine,) = [page for page in pages if page.path == "/mine/"]
    assert mine.causes["shared"].startswith("shop/urls.py:")


KNOWN = """
def known(get_response):
    def middleware(request):
        request.tier = "gold" if request.user.is_authenticated or "tier" in request.COOKIES else ""
        return get_response(request)
    return middleware
"""
TIERS = """
urlpatterns.append(path("tier/", cache_page(60)(lambda request: HttpResponse(request.tier))))
"""


def test_a_page_that_uses_nothing_of_what_middleware_read_is_not_given_to_others(new_project):
    public = ["/plain/", "/mine/", "/tier/"]
    folder = new_project("MIDDLEWARE += ['shop.known.known']", f"[tool.benchapp]\npublic = {json.dumps(public)}\n")
    (folder / "shop" / "known.py").write_text(KNOWN)
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write(CACHED_VIEWS + TIERS)
    pages = inspection.inspect(description.read(folder)).pages
    assert {page.path: page.shared for page in pages if page.path in public} == dict.fromkeys(public, True) | {
        "/plain/": False
    }


SPOKEN = """

def spoken(request):
    return HttpResponse(request.COOKIES.get("django_language", "en"))


urlpatterns.append(path("spoken/", cache_page(60)(spoken)))
"""


@pytest.mark.parametrize("in_key", [True, False])
def test_the_cookie_of_the_language_is_in_the_keys_of_django_s_cache(new_project, in_key):
    locale = f"MIDDLEWARE.insert(1, 'django.middleware.locale.LocaleMiddleware')\nUSE_I18N = {in_key}\n"
    folder = new_project(locale, '[tool.benchapp]\npublic = ["/plain/", "/spoken/"]\n')
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write(CACHED_VIEWS + SPOKEN)
    pages = inspection.inspect(description.read(folder)).pages
    shared = {page.path: page.shared for page in pages if page.path in ("/plain/", "/spoken/")}
    assert shared == {"/plain/": False, "/spoken/": not in_key}


def test_the_default_database_has_a_url_that_libpq_understands(new_project):
    database = {"NAME": "a site", "USER": "me", "PASSWORD": "p w@:/%?&", "HOST": "/var/run", "PORT": 5433}
    options = {"ENGINE": "django.db.backends.postgresql", "OPTIONS": {"sslmode": "prefer", "pool": True}}
    facts = inspection.inspect(description.read(new_project(f"DATABASES = {{'default': {database | options}}}")))
    assert psycopg2.extensions.parse_dsn(facts.postgresql) == {
        "dbname": "a site",
        "user": "me",
        "password": "p w@:/%?&",
        "host": "/var/run",
        "port": "5433",
        "sslmode": "prefer",
    }


DURABLE = """
def durable(request):
    from django.db import transaction

    with transaction.atomic(durable=True):
        return visits(request)


def strict(request):
    from django.db import transaction

    class Strict(transaction.Atomic):
        def __enter__(self):
            if transaction.get_connection().atomic_blocks:
                raise RuntimeError("not inside of another transaction, in tests neither")
            super().__enter__()

    with Strict(None, True, True):
        return visits(request)


urlpatterns += [path("durable/", durable), path("strict/", strict)]
"""


def test_a_page_that_writes_leaves_no_row_and_nothing_beside_the_file(new_project):
    # A file, whatever its name has.
    theirs = "DATABASES['default']['NAME'] = BASE_DIR / 'memory-game.sqlite3'\n" + IN_MEMORY
    folder = new_project(theirs, '[tool.benchapp]\npublic = ["/visits/", "/durable/", "/strict/"]\n')
    with (folder / "shop" / "urls.py").open("a") as file:
        file.write(DURABLE)
    # The very table that the page writes to.
    with sqlite3.connect(folder / "memory-game.sqlite3") as database:
        database.execute("create table django_session (session_key text, session_data text, expire_date text)")
        database.execute("pragma journal_mode=wal")
    database.close()
    before = tree(folder)
    facts = inspection.inspect(description.read(folder))
    assert facts.database_files == {"default": str(folder / "memory-game.sqlite3")}
    assert facts.databases_in_memory == ("cached", "shared")
    assert facts.pages[1].session_written
    # No block of the kit is around its own.
    assert [(page.status, page.error) for page in facts.pages[2:]] == [(200, None)] * 2
    assert tree(folder) == before


def test_logs_and_file_caches_are_not_written_beside_the_code(new_project):
    folder = new_project(WRITES_FILES, '[tool.benchapp]\npublic = ["/logs/"]\n')
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write(LOGS)
    before = tree(folder)
    facts = inspection.inspect(description.read(folder))
    assert [(page.path, page.status) for page in facts.pages] == [("/", 200), ("/logs/", 200)]
    assert facts.log_files == (f"{folder}/site.log",)
    assert tree(folder) == before


def test_pages_of_patterns_without_parameters_are_looked_at_if_none_is_named(new_project):
    folder = new_project("LANGUAGES, LANGUAGE_CODE = [('de', 'Deutsch'), ('en', 'English')], 'en-us'")
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write(
            "from django.contrib import admin\n"
            "from django.views.generic import RedirectView\n"
            "names = ['logout/', '__debug__/x/', 'django-admin/', 'item/<int:id>/', 'more/', 'last/']\n"
            "names = ['500/', '404-own/', *names]\n"
            "from django.conf.urls.i18n import i18n_patterns\n"
            "urlpatterns += [path('staff/', admin.site.urls), path('moved/', RedirectView.as_view(url='/last/'))]\n"
            "urlpatterns += [*(path(name, form) for name in names), *i18n_patterns(path('tour/', form))]\n"
        )
    project, own = description.read(folder), ["/", "/form/", "/visits/", "/who/", "/more/", "/last/", "/en/tour/"]
    pages = inspection.inspect(project, 5).pages
    assert [page.path for page in pages] == own[:6]
    # Those of packages come last; then one that no project has.
    pages = inspection.inspect(project, 8, closely=True).pages
    assert [page.path for page in pages] == [*own, "/moved/", "/no/such/page/"]
    (folder / "pyproject.toml").write_text('[tool.benchapp]\npublic = ["/moved/"]\n')
    # One to which another redirects, also if nobody names it.
    pages = inspection.inspect(description.read(folder), closely=True).pages
    assert [page.path for page in pages] == ["/", "/moved/", "/last/", "/no/such/page/"]


def test_a_database_that_does_not_respond_is_reported_in_seconds(new_project):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"'HOST': '127.0.0.1', 'PORT': '{silent.getsockname()[1]}'"
        folder = new_project(
            f"DATABASES = {{'default': {{'ENGINE': 'django.db.backends.postgresql', 'NAME': 'x', {place}}}}}"
        )
        begun = time.monotonic()
        facts = inspection.inspect(description.read(folder))
    assert "timeout expired" in facts.database_error and time.monotonic() - begun < 20


def test_a_package_in_a_separate_folder_is_found_and_its_application_above_its_settings(new_project):
    table = '[tool.benchapp]\nsettings = "store.settings.dev"\n'
    folder = new_project("ROOT_URLCONF = 'store.urls'\ndel WSGI_APPLICATION", table)
    package = folder / "src" / "store"
    package.parent.mkdir()
    (folder / "shop").rename(package)
    (package / "settings").mkdir()
    (package / "settings" / "__init__.py").touch()
    (package / "settings.py").rename(package / "settings" / "dev.py")
    facts = inspection.inspect(description.read(folder))
    assert facts.application == {"wsgi": "store.wsgi:application", "asgi": "store.asgi:application"}
    assert facts.pages[0].status == 200


def test_packages_of_a_project_may_have_names_of_the_inspection_s_modules(new_project):
    names = ["apps", "pages", "release", "stores", "visitor_pages"]
    assert all((run_command.INSIDE / f"{name}.py").is_file() for name in names)
    folder = new_project(f"INSTALLED_APPS += [f'{{name}}.of_shop_{{name}}' for name in {names}]")
    for name in names:
        # Without an __init__.py, as many projects have their `apps`.
        app = folder / name / f"of_shop_{name}"
        app.mkdir(parents=True)
        (app / "__init__.py").touch()
    assert inspection.inspect(description.read(folder)).pages[0].status == 200


STAGE = """
import os
DEBUG = os.environ.get("STAGE", "development") == "development"
"""


@pytest.mark.parametrize(("lines", "debug"), [("", False), ('env_file = "site.env"\n', True)])
def test_settings_are_read_with_the_defaults_of_wsgi(new_project, lines, debug):
    folder = new_project(STAGE, f"[tool.benchapp]\n{lines}")
    (folder / "site.env").write_text("STAGE=development\n")
    with (folder / "shop" / "wsgi.py").open("a") as file:
        file.write('os.environ.setdefault("SHOP_TOKEN", "of-the-code")\nos.environ["SERVER"] = "wsgi"\n')
        file.write("# os.environ.setdefault('NOT', 'set')\nos.environ.setdefault('STAGE', 'production')\n")
    project = description.read(folder)
    assert inspection.inspect(project).debug == debug
    assert project.env.items() >= {"SHOP_TOKEN": "of-the-code"}.items()
    assert not {"NOT", "SERVER"} & project.env.keys()
    # A release has them, too, except a secret.
    assert project.from_manage == ({} if debug else {"STAGE": "production"})


def test_defaults_of_wsgi_are_rendered_in_the_order_of_the_file_and_without_passwords(new_project):
    folder = new_project()
    names = [f"SHOP_{word}" for word in ("ZONE", "AREA", "MODE", "HOME", "COLOUR")]
    with (folder / "shop" / "wsgi.py").open("a") as file:
        file.write('os.environ.setdefault("SHOP_DATABASE", "postgres://shop:word@db/shop")\n')
        for name in names:
            file.write(f'os.environ.setdefault("{name}", "{name.lower()}")\n')
    project = description.read(folder)
    assert list(project.from_manage) == names
    assert project.env["SHOP_DATABASE"] == "postgres://shop:word@db/shop"


def test_urls_may_name_a_static_file_that_is_not_collected_yet(new_project):
    folder = new_project(HASHED)
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write(ICON)
        urls.write("urlpatterns += [path('icon/', lambda request: HttpResponse(ICON))]\n")
    facts = inspection.inspect(description.read(folder), 10, closely=True)
    assert {page.path: page.status for page in facts.pages}["/icon/"] == 200
    assert facts.static_hashed and not facts.missing_static


def test_a_broken_application_for_asgi_is_a_problem_beside_one_for_wsgi(new_project):
    folder = new_project("ASGI_APPLICATION = 'shop.asgi.application'")
    (folder / "shop" / "asgi.py").write_text("import package_of_its_servers\n")
    facts = inspection.inspect(description.read(folder))
    assert facts.application == {"wsgi": "shop.wsgi:application"}
    assert "No module named 'package_of_its_servers' (shop/asgi.py:1)" in facts.application_problem
    (folder / "pyproject.toml").write_text("[tool.benchapp]\nasgi = 'shop.asgi:application'\n")
    with pytest.raises(BenchError, match=r"shop\.asgi:application cannot be imported"):
        inspection.inspect(description.read(folder))


def test_a_package_with_a_name_of_the_kit_s_is_that_of_the_project(new_project):
    folder = new_project(description="[tool.benchapp]\nsettings = 'config.settings'\n")
    (folder / "shop").rename(folder / "config")
    (folder / "config" / "__init__.py").unlink()
    for path in (folder / "config").glob("*.py"):
        path.write_text(path.read_text().replace("shop.", "config."))
    facts = inspection.inspect(description.read(folder))
    assert (facts.urls[:4], facts.pages[0].status) == (("/", "/form/", "/visits/", "/who/"), 200)


def test_names_of_this_machine_are_no_names_of_the_site(new_project):
    folder = new_project("ALLOWED_HOSTS = ['localhost', '::1', '0.0.0.0', '.localhost', '127.0.0.1']")
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write("urlpatterns += [path('named/', lambda request: HttpResponse(request.build_absolute_uri()))]\n")
    facts = inspection.inspect(description.read(folder), 10)
    assert {page.path: (page.status, page.readers) for page in facts.pages}["/named/"] == (200, {})


def test_a_second_database_that_is_down_is_reported_and_pages_without_it_are_looked_at(new_project):
    down = {"ENGINE": "django.db.backends.postgresql", "NAME": "x", "HOST": "127.0.0.1", "PORT": str(free_port())}
    # A replica has the place of the default one, whichever that is.
    replica = "DATABASES['replica'] = {**DATABASES['default'], 'TEST': {'MIRROR': 'default'}}"
    folder = new_project(f"DATABASES['second'] = {down}\n{replica}")
    facts = inspection.inspect(description.read(folder), closely=True)
    assert (list(facts.databases), list(facts.database_files)) == (["default", "second"], ["default"])
    assert [(page.path, page.status) for page in facts.pages] == [("/", 200), ("/no/such/page/", 404)]
    assert facts.silent["DATABASES['second']"].startswith("OperationalError: ")


BACKEND = """
from django.db.backends.sqlite3 import base


class DatabaseWrapper(base.DatabaseWrapper):
    def init_connection_state(self):
        super().init_connection_state()
        # As the backend of MySQL does.
        self.cursor().close()
"""


def test_a_second_database_with_a_backend_of_the_project_is_no_problem(new_project):
    folder = new_project("DATABASES['second'] = {'ENGINE': 'shop.sqlite', 'NAME': BASE_DIR / 'second.sqlite3'}")
    (folder / "shop" / "sqlite").mkdir()
    (folder / "shop" / "sqlite" / "base.py").write_text(BACKEND)
    (folder / "shop" / "sqlite" / "__init__.py").touch()
    facts = inspection.inspect(description.read(folder), closely=True)
    assert (list(facts.databases), facts.silent) == (["default", "second"], {})
    # It may begin transactions in its own way.
    assert list(facts.sqlite_modes) == ["default"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("ALLOWED_HOSTS = 'example.org'", "must be a list or a tuple.; correct it, or settings in [tool.benchapp]"),
        (
            "from django.core.exceptions import ImproperlyConfigured\nraise ImproperlyConfigured('no environment KEY')",
            "; write the variable into a file, and name it: env_file",
        ),
        ("import os\nos.environ['SHOP_KEY']", "settings shop.settings cannot be imported: KeyError: 'SHOP_KEY' (shop/"),
        (
            "SECRET_KEY = ''",
            "SECRET_KEY setting must not be empty.; write the variable into a file, and name it: env_f",
        ),
        (
            "from django.core.exceptions import ImproperlyConfigured as No\nraise No('no GDAL. Is GDAL installed?')",
            "; install it here and on the host, on Debian by apt-get install gdal-bin",
        ),
        ("import nonsense.x", "; install it there, or name the interpreter that has it: python = "),
        ("import shop.nonsense", "; correct it, or settings in [tool.benchapp]"),
        ("import sys\nsys.exit('set STAGE')", "cannot be imported: SystemExit: set STAGE (shop/settings.py:"),
        (
            "import os\nif not os.environ.get('SHOP_DB'):\n    raise SystemExit('Set one of:\\n- SHOP_DB, such as x')",
            "SystemExit: Set one of: - SHOP_DB, such as x (shop/settings.py:",
        ),
        (
            "import os\nif not os.getenv('SHOP_DB', ''):\n    raise ValueError('SHOP_DB, please')",
            "; write SHOP_DB into a file, and name it: env_file",
        ),
        (
            "raise LookupError('Environment variable `SHOP_KEY` must be supplied')",
            "; write the variable into a file, and name it: env_file",
        ),
        ("open('/run/secrets/none')", "; give it that while it is measured, or have the settings do without, by a "),
        (
            "raise ValueError('cannot') from FileNotFoundError('logs')",
            "ValueError: cannot: FileNotFoundError: logs (shop/",
        ),
        ("WSGI_APPLICATION = 'shop.wsgi.x'", " AttributeError: module 'shop.wsgi' has no attribute 'x'; correct it,"),
        ("DATABASES['default']['ENGINE'] = 'django.db.backends.mysql'", "; install it there, or name the interpreter"),
        ("ROOT_URLCONF = 'shop.nowhere'", "urls cannot be imported: ModuleNotFoundError"),
    ],
)
def test_what_cannot_be_imported_is_one_line(new_project, settings, message):
    folder = new_project(settings)
    with pytest.raises(BenchError) as caught:
        inspection.inspect(description.read(folder))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


STORAGES = "STORAGES = {'default': {'BACKEND': 'django.core.files.storage.FileSystemStorage'}}"
MORE = "DEBUG, ALLOWED_HOSTS, STATIC_ROOT, MEDIA_ROOT = True, [], '/nowhere', BASE_DIR / 'media'"
# As apps do that make images in another size.
STORES = """
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage


def stores(request):
    default_storage.save("old/new", ContentFile(default_storage.open("old/there").read()))
    default_storage.open("old/there", "w").write("overwritten")
    return HttpResponse("stored")


"""


def test_pages_are_requested_as_they_are_served(new_project):
    folder = new_project(f"{STORAGES}\nSTORAGES['staticfiles'] = {{'BACKEND': 'shop.kept.Own'}}\n{MORE}")
    (folder / "shop" / "kept.py").write_text(
        "from django.contrib.staticfiles.storage import ManifestStaticFilesStorage\n\n\n"
        "class Own(ManifestStaticFilesStorage):\n    pass\n"
    )
    (folder / "pyproject.toml").write_text(
        '[tool.benchapp]\npublic = ["/admin/login/", "/no/such/", "/bad/", "/stores/"]\n'
    )
    (folder / "media" / "old").mkdir(parents=True)
    (folder / "media" / "old" / "there").write_text("x" * 200)
    with (folder / "shop" / "urls.py").open("a") as urls:
        # As apps do that name a static file while they are imported.
        urls.write("from django.contrib.staticfiles.storage import staticfiles_storage\nstaticfiles_storage.base_url\n")
        urls.write("from django.contrib import admin\n")
        urls.write(STORES)
        urls.write("urlpatterns = [path('admin/', admin.site.urls), path('bad/', lambda request: {}['x'])]\n")
        urls.write("urlpatterns.append(path('stores/', stores))\n")
    facts = inspection.inspect(description.read(folder))
    # Neither Django's page of congratulations nor an error over names of files that nobody has collected.
    assert [page.status for page in facts.pages] == [404, 200, 404, 500, 200]
    assert re.fullmatch(r"returns status 500: KeyError: 'x' \(shop/urls.py:\d+\)", facts.pages[3].words)
    assert (facts.debug, facts.allowed_hosts, facts.static_hashed) == (True, (), True)
    assert facts.media_root == str(folder / "media")
    assert [(path.name, path.read_text()) for path in (folder / "media" / "old").iterdir()] == [("there", "x" * 200)]


def test_a_page_that_is_not_for_the_host_that_the_kit_requests_is_found(new_project):
    folder = new_project("ALLOWED_HOSTS = ['localhost', '.shop.example']\nMIDDLEWARE.append('shop.urls.tenants')")
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write("def tenants(get_response):\n    from django.http import HttpResponseNotFound as Missing\n")
        urls.write("    return lambda it: get_response(it) if it.get_host() == 'shop.example' else Missing()\n")
    facts = inspection.inspect(description.read(folder))
    assert [(page.path, page.status, page.here) for page in facts.pages] == [("/", 200, 404)]


def test_a_page_for_errors_that_fails_too_is_an_error_of_the_page(new_project):
    folder = new_project()
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write("\ndef broken(request, exception=None):\n    raise KeyError('x')\n\n")
        urls.write("handler404 = handler500 = broken\nurlpatterns[0] = path('', broken)\n")
    pages = inspection.inspect(description.read(folder), closely=True).pages
    assert [page.path for page in pages] == ["/", "/no/such/page/"]
    for page in pages:
        assert re.fullmatch(r"returns status 500: KeyError: 'x' \(shop/urls.py:\d+\)", page.words)


def test_a_project_without_a_database_is_looked_at(new_project):
    without = "DATABASES, MIDDLEWARE, INSTALLED_APPS = {}, [], ['django.contrib.staticfiles']"
    facts = inspection.inspect(description.read(new_project(without)))
    assert (facts.databases, facts.database_error, facts.migrations_left) == ({}, None, 0)
    assert [(page.path, page.status, page.queries) for page in facts.pages] == [("/", 200, 0)]


def test_an_application_that_has_its_own_say_which_settings_serve_is_refused(new_project):
    folder = new_project()
    wsgi = folder / "shop" / "wsgi.py"
    wsgi.write_text(wsgi.read_text().replace("os.environ.setdefault(", "os.environ.__setitem__("))
    with pytest.raises(BenchError, match=r"it sets DJANGO_SETTINGS_MODULE whatever .* use os.environ.setdefault there"):
        inspection.inspect(description.read(folder))


def test_an_interpreter_without_django_is_named(new_project, tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.base_prefix}/bin/python3 -S "$@"\n')
    python.chmod(0o755)
    folder = new_project(description=f'[tool.benchapp]\npython = "{python}"\n')
    with pytest.raises(BenchError, match="'django'; install it there, or name the interpreter that has it: python = "):
        inspection.inspect(description.read(folder))


def test_the_apps_of_hosts_need_no_package_in_the_environment_except_without_benchapps_settings(new_project):
    folder = new_project("INSTALLED_APPS += ['benchapp.login_limit']")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / ".venv"], check=True)
    # The folder with Django, without the lines there that name others.
    site = next((folder / ".venv").glob("lib/*/site-packages"))
    (site / "packages.pth").write_text(f"{Path(django.__file__).parents[1]}\n")
    project = description.read(folder)
    assert "benchapp.login_limit" in inspection.inspect(project).settings["INSTALLED_APPS"]
    with pytest.raises(BenchError, match=f"No module named 'benchapp'; {INSTALL_OF_KIT}"):
        inspection.inspect(project, plain=True)


def test_a_cookie_that_is_named_by_keyword_breaks_no_page(new_project):
    folder = new_project("", '[tool.benchapp]\npublic = ["/seen/"]\n')
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write("def seen(request):\n    response = HttpResponse('x')\n")
        urls.write("    response.set_cookie(key='seen', value=request.COOKIES.get('theme', '1'))\n")
        urls.write("    return response\n")
        urls.write("urlpatterns.append(path('seen/', seen))\n")
    page = next(it for it in inspection.inspect(description.read(folder)).pages if it.path == "/seen/")
    assert (page.status, page.cookies) == (200, ("seen",)) and page.causes["seen"].startswith("shop/urls.py:")
    assert page.causes["reads theme"] == page.causes["seen"]


@pytest.mark.parametrize(
    ("pattern", "protected"),
    [
        ("path('media/<path:name>', lambda request, name: HttpResponse(name))", True),
        ("path('media/<str:name>', lambda request, name: HttpResponse(name))", True),
        ("path('media/<path:path>', serve, {'document_root': '/'})", False),
        ("path('<path:name>', lambda request, name: HttpResponse(name))", False),
    ],
)
def test_uploads_that_a_view_sends_are_no_web_servers(new_project, pattern, protected):
    folder = new_project("MEDIA_URL, MEDIA_ROOT = '/media/', BASE_DIR / 'media'")
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write(f"from django.views.static import serve\nurlpatterns.append({pattern})\n")
    facts = inspection.inspect(description.read(folder))
    assert (facts.media_view, facts.media_url) == ((True, None) if protected else (False, "/media/"))


PRODUCTION = (paths.KIT / "docs" / "production.md").read_text("utf-8")
TELLS = re.search(r"```python\n(import os\n.*?BENCHAPP_LOADED.*?)```", PRODUCTION, re.S)[1]


@pytest.mark.parametrize(
    ("module", "lines", "loaded"),
    [
        ("wsgi", TELLS, ("wsgi",)),
        ("asgi", TELLS, ("asgi",)),
        ("wsgi", TELLS.replace("\n", "\n# "), ()),
        # Nothing imports it.
        ("loaded", TELLS, ()),
    ],
)
def test_an_application_tells_a_unit_that_it_has_loaded(new_project, module, lines, loaded):
    folder = new_project()
    with (folder / "shop" / f"{module}.py").open("a") as file:
        file.write(f"\n{lines}")
    before = tree(folder)
    assert inspection.inspect(description.read(folder)).tells_loaded == loaded
    assert tree(folder) == before


def test_two_applications_in_one_module_tell_both(new_project):
    folder = new_project("", '[tool.benchapp]\nwsgi = "shop.served:wsgi"\nasgi = "shop.served:asgi"\n')
    both = "from shop.wsgi import application as wsgi\nfrom shop.asgi import application as asgi\n"
    (folder / "shop" / "served.py").write_text(f"{both}{TELLS}")
    assert inspection.inspect(description.read(folder)).tells_loaded == ("wsgi", "asgi")


CHECK = """
class Up:
    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        from django.http import HttpResponse

        return HttpResponse() if request.path == "/up/" else self.get_response(request)


SECURE_SSL_REDIRECT = True
"""
BEFORE = "MIDDLEWARE.insert(0, 'shop.settings.Up')"
REFUSED = "MIDDLEWARE.append('shop.settings.Up')"


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        (f"{CHECK}{BEFORE}", 200),
        (f"{CHECK}{REFUSED}\nALLOWED_HOSTS = ['*']", 301),
        (f"{CHECK}{REFUSED}\nSECURE_REDIRECT_EXEMPT = ['up/']", 400),
        (f"{CHECK}{REFUSED}\nSECURE_REDIRECT_EXEMPT = ['up/']\nALLOWED_HOSTS = ['*']", 200),
    ],
)
def test_a_plain_host_s_health_check_is_requested_as_by_a_load_balancer(new_project, settings, status):
    project = description.read(new_project(settings, '[tool.benchapp]\nhealth = "/up/"\n'))
    assert inspection.inspect(project, plain=True).checks_by_address == {"/up/": status}
    assert inspection.inspect(project).checks_by_address == {}


def test_pages_can_be_left_out(new_project):
    project = description.read(new_project())
    assert inspection.inspect(project).pages
    facts = inspection.inspect(project, pages=False)
    assert (facts.pages, facts.django) == ((), django.get_version())
