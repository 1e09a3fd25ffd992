"""Findings of doctor in projects with settings, templates and variables as people have them, each with its line."""

from __future__ import annotations

import os
import subprocess

import pytest

from bench.errors import BenchError
from bench.serve.machine.ports import free_port, listening
from bench.serve.project import description, inspection
from bench.serve.project.findings import Examination, examine
from bench.serve.project.findings.data import server_side_cursors
from tests.waiting import until

# Each starts another interpreter.
pytestmark = pytest.mark.servers

# What each finding is about: its id, and a word of the line that is to be named.
TROUBLE = """
TEMPLATES = [{
    "BACKEND": "django.template.backends.django.DjangoTemplates",
    "DIRS": [BASE_DIR / "pages"],
    "OPTIONS": {
        "loaders": ["django.template.loaders.filesystem.Loader", "django.template.loaders.app_directories.Loader"],
        "context_processors": [],
    },
}]
SECURE_REFERRER_POLICY = "no-referrer"
STORAGES = {"default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
            "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"}}
STATICFILES_DIRS = [BASE_DIR / "assets"]
MIDDLEWARE = [
    *MIDDLEWARE,
    "django.middleware.gzip.GZipMiddleware",
]
SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
        "LOCATION": BASE_DIR / "cached",
        "TIMEOUT": None,
    }
}
DATA_UPLOAD_MAX_MEMORY_SIZE = None
EMAIL_HOST = ""
SECRET_KEY = "kq8Wm2Zr5Tt7Yb1Nc4Vx6Ls9Pd3Fg0Hj-long-enough-and-without-a-prefix"
CHANNEL_LAYERS = {
    "default": {"BACKEND": "channels.layers.InMemoryChannelLayer"},
}
SECURE_CSP = {"script-src": ["'self'", "<CSP_NONCE_SENTINEL>"]}
"""
EXPECTED = {
    "uncached-templates": '"loaders": [',
    "no-referrer": "SECURE_REFERRER_POLICY",
    "breach": '"django.middleware.gzip',
    "signed-cookie-sessions": "SESSION_ENGINE",
    "endless-file-cache": '"TIMEOUT": None',
    "unlimited-body": "DATA_UPLOAD_MAX_MEMORY_SIZE",
    "mail-without-host": "EMAIL_HOST",
    "secret-key-in-code": "kq8Wm2Zr5Tt7",
    "channel-layer-per-process": "InMemoryChannelLayer",
    "csp-nonce-unused": "NONCE_SENTINEL",
}
RIGHT = """
import os
TEMPLATES = [{
    "BACKEND": "django.template.backends.django.DjangoTemplates",
    "DIRS": [BASE_DIR / "pages"],
    "OPTIONS": {
        "loaders": [("django.template.loaders.cached.Loader", ["django.template.loaders.filesystem.Loader"])],
        "context_processors": ["django.template.context_processors.csp"],
    },
}]
SECURE_REFERRER_POLICY = "no-referrer,strict-origin-when-cross-origin"
STORAGES = {"default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
            "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"}}
STATICFILES_DIRS = [BASE_DIR / "assets"]
SESSION_ENGINE = "django.contrib.sessions.backends.cached_db"
_file_based = "django.core.cache.backends.filebased.FileBasedCache"
CACHES = {"default": {"BACKEND": _file_based, "LOCATION": BASE_DIR / "cached"}}
DATA_UPLOAD_MAX_MEMORY_SIZE = 5_000_000
EMAIL_HOST = os.environ.get("EMAIL_HOST", "mail.example.org")
SECRET_KEY = os.environ["SHOP_KEY"]
CHANNEL_LAYERS = {"default": {"BACKEND": "channels_redis.core.RedisChannelLayer"}}
SECURE_CSP = {"script-src": ["'self'", "<CSP_NONCE_SENTINEL>"]}
"""
SENDS = "\nfrom django.core.mail import send_mail\n\n\ndef told(request):\n    send_mail('a', 'b', None, ['c'])\n"
KEY = '[tool.benchapp]\nenv_file = "site.env"\n'
PAGE = '{% load static %}<link href="{% static "css/site.css" %}"><script src="{% static "js/site.js" %}"></script>'


def findings_of(folder, patterns=10):
    """The findings of a project: id -> line."""
    project = description.read(folder)
    facts = inspection.inspect(project, patterns, closely=True)
    return {item.id: item.where for item in examine(Examination(project, facts, processes=4, threads=1))}


def line(folder, file, text):
    """The last line of a file that has a text, as findings name it."""
    lines = (folder / file).read_text().splitlines()
    return f"{file}:{max(number for number, it in enumerate(lines, 1) if text in it)}"


def with_assets(folder, script, page=PAGE):
    """Static files and a template that names them; the view of `/about/` renders it."""
    for name, text in (("assets/css/site.css", "body {}"), ("assets/js/site.js", script), ("pages/about.html", page)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write("from django.shortcuts import render\n")
        urls.write("urlpatterns.append(path('about/', lambda request: render(request, 'about.html')))\n")


def test_settings_that_people_have_are_found_with_their_lines(new_project):
    folder = new_project(TROUBLE)
    with_assets(folder, "let a = 1;\n//# sourceMappingURL=site.js.map\n")
    (folder / "shop" / "views.py").write_text(SENDS)
    items = findings_of(folder)
    expected = {name: line(folder, "shop/settings.py", text) for name, text in EXPECTED.items()}
    assert {name: items.get(name) for name in expected} == expected
    assert items["dangling-reference"] == "js/site.js"


def test_a_project_that_is_right_has_none_of_them(new_project):
    folder = new_project(RIGHT, KEY)
    (folder / "site.env").write_text("SHOP_KEY=kq8Wm2Zr5Tt7Yb1Nc4Vx6Ls9Pd3Fg0Hj-long-enough-and-without-a-prefix\n")
    # A map that is there, one in the file itself, one elsewhere, and one in a string.
    maps = ("site.js.map", "data:application/json;base64,e30=", "https://cdn.example/x.map")
    with_assets(folder, "".join(f"//# sourceMappingURL={it}\n" for it in maps) + 'let a = "//# sourceMappingURL=b";\n')
    (folder / "assets" / "js" / "site.js.map").write_text("{}")
    (folder / "shop" / "views.py").write_text(SENDS)
    items = findings_of(folder)
    wrong = {*EXPECTED, "dangling-reference", "static-file-error", "static-file-missing", "security.W009"}
    assert wrong & items.keys() == set()


@pytest.mark.parametrize(
    ("storage", "finding"),
    [("ManifestStaticFilesStorage", "static-file-error"), ("StaticFilesStorage", "static-file-missing")],
)
def test_a_static_file_that_a_page_names_and_nobody_has(new_project, storage, finding):
    backend = {"BACKEND": f"django.contrib.staticfiles.storage.{storage}"}
    folder = new_project(
        f"STORAGES = {{'staticfiles': {backend}}}\nTEMPLATES[0]['DIRS'] = [BASE_DIR / 'pages']\n"
        "STATICFILES_DIRS = [BASE_DIR / 'assets']\nTEMPLATES[0]['APP_DIRS'] = True"
    )
    with_assets(folder, "", f'{PAGE}\n{{# {{% static "css/old.css" %}} #}}<img src="{{% static "img/nope.png" %}}">')
    (folder / "pages" / "unused.html").write_text("{% load static %}\n{% static 'img/also.png' %}{% static 'img/' %}")
    project = description.read(folder)
    facts = inspection.inspect(project, 10, closely=True)
    items = {it.id: it for it in examine(Examination(project, facts, 4, 1)) if it.id.startswith("static-file")}
    assert items[finding].where == "pages/about.html:2"
    # A template that no page of these renders need not be one of a page, and is no error.
    assert items.keys() == {finding, "static-file-missing"}
    assert "img/also.png" in items["static-file-missing"].what
    # What a command makes when static files are collected may be missing.
    (folder / "pyproject.toml").write_text('[tool.benchapp]\nbuild = ["compress"]\n')
    assert not {"static-file-error", "static-file-missing"} & findings_of(folder).keys()


TAG = "{% load static cache %}{% cache 60 part %}kept{% endcache %}"


@pytest.mark.parametrize(
    ("settings", "code", "page", "is_used"),
    [
        ("", "", TAG, True),
        ("", "from django.core.cache import caches\nPAGES = caches['default']\ndel caches", "", True),
        ("", "from django.views.decorators.cache import cache_page, never_cache", "", True),
        ("", "from django.views.decorators.cache import never_cache", "", False),
        ("SESSION_ENGINE = 'django.contrib.sessions.backends.cached_db'", "", "", True),
        # An object that is made when it is used first, and cannot be made here.
        (
            "",
            "from django.utils.functional import SimpleLazyObject\nLATER = SimpleLazyObject(lambda: 1 / 0)",
            "",
            False,
        ),
    ],
)
def test_the_cache_of_each_project_counts_only_if_something_uses_it(new_project, settings, code, page, is_used):
    folder = new_project(f"{settings}\nTEMPLATES[0]['DIRS'] = [BASE_DIR / 'pages']\n")
    (folder / "pages").mkdir()
    (folder / "pages" / "part.html").write_text(page)
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write(code)
    assert ("cache-per-process" in findings_of(folder)) == is_used


@pytest.mark.parametrize(
    ("settings", "code", "is_used"),
    [
        ("", "import rest_framework.throttling", False),
        ("", "from rest_framework.throttling import RateThrottle", True),
        ("REST_FRAMEWORK = {'DEFAULT_THROTTLE_CLASSES': ['x.Throttle']}", "import rest_framework.throttling", True),
    ],
)
def test_a_library_with_throttles_uses_the_cache_only_if_the_project_has_one(new_project, settings, code, is_used):
    folder = new_project(f"import sys\nsys.path.append(str(BASE_DIR / 'site-packages'))\n{settings}\n")
    library = folder / "site-packages" / "rest_framework"
    library.mkdir(parents=True)
    (library / "__init__.py").touch()
    (library / "throttling.py").write_text("from django.core.cache import cache\n\n\nclass RateThrottle:\n    pass\n")
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write(code)
    assert ("cache-per-process" in findings_of(folder)) == is_used


def test_a_storage_in_a_setting_that_django_ignores_hashes_no_names(new_project):
    hashed = "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"
    folder = new_project(f"STATICFILES_STORAGE = '{hashed}'\n")
    lines = (folder / "shop" / "settings.py").read_text().splitlines()
    items = findings_of(folder)
    number = next(number for number, line in enumerate(lines, 1) if "STATICFILES_STORAGE" in line)
    assert items["storage-ignored"] == items["static-unhashed"] == f"shop/settings.py:{number}"


WHITENOISE = """
MIDDLEWARE.insert(1, "whitenoise.middleware.WhiteNoiseMiddleware")
STATIC_ROOT = BASE_DIR / "collected"
STORAGES = {"staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"}}
"""


def test_a_static_file_that_only_static_root_has_is_found(new_project):
    """The kit and each host collect into another folder."""
    folder = new_project(f"{WHITENOISE}\nTEMPLATES[0]['DIRS'] = [BASE_DIR / 'pages']\n")
    with_assets(folder, "", "{% load static %}<img src=\"{% static 'img/made.png' %}\">")
    (folder / "collected" / "img").mkdir(parents=True)
    (folder / "collected" / "img" / "made.png").touch()
    items = findings_of(folder)
    assert "static-file-error" in items


def test_a_name_that_only_a_package_tries_is_no_finding(new_project):
    folder = new_project(WHITENOISE)
    # WhiteNoise tries the name without the hash when its middleware is made.
    collected = folder / "collected" / "css" / "untold.0123456789ab.css"
    collected.parent.mkdir(parents=True)
    collected.touch()
    assert not {"static-file-error", "static-file-missing"} & findings_of(folder).keys()


BRANCHES = """
import os
if os.environ.get("SHOP_MODE") == "production":
    DEBUG = False
    SECURE_REFERRER_POLICY = "same-origin"
else:
    SECURE_REFERRER_POLICY = "no-referrer"
    EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
SECRET_KEY = os.environ.get("SHOP_KEY", "kq8Wm2Zr5Tt7Yb1Nc4Vx6Ls9Pd3Fg0Hj-long-enough")
"""


def test_the_line_is_that_of_the_statement_that_ran(new_project):
    folder = new_project(f"DEBUG = True\n{BRANCHES}", KEY)
    (folder / "site.env").write_text("")
    items = findings_of(folder)
    assert items["security.W018"] == line(folder, "shop/settings.py", "DEBUG = True")
    assert items["no-referrer"] == line(folder, "shop/settings.py", "no-referrer")
    assert items["mail-not-sent"] == line(folder, "shop/settings.py", "console")
    assert items["secret-key-in-code"] == line(folder, "shop/settings.py", "SHOP_KEY")
    (folder / "site.env").write_text(f"SHOP_MODE=production\nSHOP_KEY={'xyzzy-0123456789' * 5}\n")
    assert not {"security.W018", "no-referrer", "mail-not-sent", "secret-key-in-code"} & findings_of(folder).keys()


def test_mail_to_the_console_while_debug_is_on_is_right(new_project):
    console = 'EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"'
    folder = new_project(f"DEBUG = True\nif DEBUG:\n    {console}\n")
    assert "mail-not-sent" not in findings_of(folder)


VARIABLES = """
import os
from os import environ

if environ.get("SHOP_MODE") == "production":
    BUCKET = os.environ["SHOP_BUCKET"]
try:
    REGION = os.environ["SHOP_REGION"]
except KeyError:
    REGION = "eu"
GIVEN = os.environ["SHOP_GIVEN"]
OTHER = environ["SHOP_OTHER"] if "SHOP_OTHER" in environ else ""
SITE_NAME = os.environ["SHOP_NAME"]
MAIL = {"user": environ["SHOP_MAIL_USER"], "password": os.environ["SHOP_MAIL_PASSWORD"]}
DEFAULTED = os.environ.get("SHOP_DEFAULT", "x")
"""


def test_all_variables_that_the_settings_lack_are_named_at_once(new_project):
    folder = new_project(VARIABLES, KEY)
    (folder / "site.env").write_text("SHOP_GIVEN=1\n")
    with pytest.raises(BenchError) as raised:
        inspection.inspect(description.read(folder))
    assert "write SHOP_NAME, SHOP_MAIL_USER and SHOP_MAIL_PASSWORD into a file" in str(raised.value)
    (folder / "site.env").write_text("SHOP_GIVEN=1\nSHOP_NAME=a\nSHOP_MAIL_USER=b\nSHOP_MAIL_PASSWORD=c\n")
    assert inspection.inspect(description.read(folder)).pages[0].status == 200


ENVIRONS = """
import os


class EnvError(ValueError):
    pass


def env(name):
    if name not in os.environ:
        raise EnvError(f'Environment variable "{name}" not set')
    return os.environ[name]


DOMAIN = env("SHOP_DOMAIN")
MAIL = env("SHOP_MAIL")
"""


def test_a_library_that_says_in_its_own_words_that_a_variable_is_missing(new_project):
    with pytest.raises(BenchError, match="write SHOP_DOMAIN and SHOP_MAIL into a file"):
        inspection.inspect(description.read(new_project(ENVIRONS)))


OWN_READER = """
import os
from pathlib import Path

OF_FILE = dict(line.split("=") for line in Path(".env").read_text().split())


def needed(name, default=None):
    value = os.getenv(name) or OF_FILE.get(name, default)
    if value is None:
        raise RuntimeError("the configuration is incomplete")
    return value


GIVEN = needed("SHOP_GIVEN")
KEY, OTHER = {needed("SHOP_KEY")}, needed("SHOP_OTHER", "x")
LATER = needed("SHOP_GIVEN_TOO")
PORT = int(needed("SHOP_PORT"))
DATA = needed("SHOP_DATA").split(",")
"""
AT_ONCE = """
import os

OPTIONAL = os.environ.get("SHOP_OPTIONAL")
missing = [name for name in ("SHOP_KEY", "SHOP_PORT", "SHOP_DATA") if name not in os.environ]
if missing:
    raise SystemExit(f"set these: {missing}")
"""
NOTHING_CHECKED = """
import os
from dataclasses import dataclass, field


@dataclass
class Shop:
    key: str = field(default_factory=lambda: os.environ["SHOP_KEY"])
    port: int = field(default_factory=lambda: int(os.getenv("SHOP_PORT")))


OPTIONAL = os.getenv("SHOP_OPTIONAL")
SHOP = Shop()
assert (DATA := os.getenv("SHOP_DATA")), "incomplete"
"""
OF_LIBRARY = """
import environ

shop = environ.Env(SHOP_OPTIONAL=(bool, False))
KEY, OPTIONAL = shop("SHOP_KEY"), shop("SHOP_OPTIONAL")
PORT = shop.cache_url("SHOP_PORT")
DATA = shop.db("SHOP_DATA")
"""
# A class of settings that reads the whole environment, as pydantic's does.
OF_FIELDS = """
import os


class ValidationError(ValueError):
    title = "Shop"

    def errors(self):
        return [{"type": "missing", "loc": (name,)} for name in self.args[0]]


class Shop:
    model_config = {"env_prefix": "shop_"}
    model_fields = {"key": str, "port": int, "data": str}

    def __init__(self):
        given = {name.lower() for name, _ in os.environ.items()}
        names = {"key": "shop_key", "port": "shop_port", "SHOP_DATA": "shop_data"}
        if missing := [name for name in names if names[name] not in given]:
            raise ValidationError(missing)


SHOP = Shop()
"""


@pytest.mark.parametrize("settings", [OWN_READER, AT_ONCE, NOTHING_CHECKED, OF_LIBRARY, OF_FIELDS])
def test_variables_are_named_at_once_whatever_reads_them(new_project, settings):
    folder = new_project(settings, KEY)
    (folder / "site.env").touch()
    (folder / ".env").write_text("SHOP_GIVEN=1\nSHOP_GIVEN_TOO=1\n")
    with pytest.raises(BenchError, match="write SHOP_KEY, SHOP_PORT and SHOP_DATA into a file"):
        inspection.inspect(description.read(folder))


def test_the_variable_of_an_empty_secret_key_is_named(new_project):
    with pytest.raises(BenchError, match="write SECRET_KEY into a file"):
        inspection.inspect(description.read(new_project("import os\nSECRET_KEY = os.environ.get('SECRET_KEY')")))


# Validators of settings that are read from the whole environment, as dynaconf's are: its error names the first only.
VALIDATED = """
import os


class Validator:
    def __init__(self, *names, needed=True):
        self.names, self.needed = names, needed

    def validate(self, settings):
        for name in self.names:
            if self.needed and not settings.exists(name):
                raise ValueError(f"{name} is required in env DEVELOPMENT")


class Settings(dict):
    def exists(self, name):
        return f"SHOP_{name}".replace("data.host", "DATA__host") in dict(os.environ.items())


class ValidatorList(list):
    settings = Settings(ENVVAR_PREFIX_FOR_DYNACONF="shop")

    def validate(self):
        for validator in self:
            validator.validate(self.settings)


ValidatorList(
    [Validator("KEY", "GIVEN", "PORT"), Validator("OPTIONAL", needed=False), Validator("PORT", "data.host")]
).validate()
"""


def test_all_settings_are_named_that_validators_find_missing(new_project):
    folder = new_project(VALIDATED, KEY)
    (folder / "site.env").write_text("SHOP_GIVEN=1\n")
    with pytest.raises(BenchError, match="write SHOP_KEY, SHOP_PORT and SHOP_DATA__host into a file"):
        inspection.inspect(description.read(folder))


def test_no_variable_is_named_for_an_error_that_none_mends(new_project):
    settings = "import os\nOPTIONAL = os.getenv('SHOP_OPTIONAL')\nif OPTIONAL:\n    raise ValueError('too')\n1 / 0"
    with pytest.raises(BenchError, match="ZeroDivisionError") as raised:
        inspection.inspect(description.read(new_project(settings)))
    assert "SHOP_OPTIONAL" not in str(raised.value)


ROUTES = """
from django.contrib.auth.decorators import login_required
from django.urls import include, re_path
from django.contrib.auth import views as auth
from shop import blog

walled = [path(f"walled/{number}/", login_required(form)) for number in range(12)]
router = [re_path(r"^users/$", form), re_path(r"^users/(?P<pk>[0-9]+)/$", form), re_path(r"^files\\.json$", form)]
urlpatterns = [path("accounts/login/", form), *walled, re_path(r"^api/", include(router)), path("a/", form),
               path("b/", form), path("posts/", blog.posts), path("reset/", auth.PasswordResetView.as_view())]
"""


def test_pages_of_routers_and_of_each_app_are_looked_at_before_those_behind_the_log_in(new_project):
    folder = new_project("LOGIN_URL = '/accounts/login/'", '[tool.benchapp]\nhealth = "/posts/"\n')
    (folder / "shop" / "blog.py").write_text(
        "from django.http import HttpResponse\n\n\ndef posts(request):\n    return HttpResponse('p')\n"
    )
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write(ROUTES)
    pages = inspection.inspect(description.read(folder), 6).pages
    paths = [page.path for page in pages]
    assert {"/posts/", "/api/users/", "/api/files.json", "/a/", "/b/"} <= set(paths)
    assert len([path for path in paths if "walled" in path]) == 1


def test_a_redirect_to_a_static_file_is_not_followed(new_project):
    folder = new_project()
    with (folder / "shop" / "urls.py").open("a") as urls:
        urls.write("from django.shortcuts import redirect\n")
        urls.write("urlpatterns.append(path('avatar/', lambda request: redirect('/static/img/blank.png')))\n")
    pages = inspection.inspect(description.read(folder), 10, closely=True).pages
    assert ("/avatar/", 302) in [(page.path, page.status) for page in pages]
    assert not [page.path for page in pages if page.path.startswith("/static/")]


def test_a_pooler_in_front_of_postgresql_is_known_by_its_port_or_name(new_project):
    lines = []
    for alias, place in (
        ("default", "'HOST': '127.0.0.1', 'PORT': 6432"),
        ("named", "'HOST': 'aws-0-eu.pooler.invalid', 'PORT': '5432'"),
        ("right", "'HOST': '127.0.0.1', 'PORT': '6432', 'DISABLE_SERVER_SIDE_CURSORS': True"),
        ("plain", "'HOST': '127.0.0.1', 'PORT': '5432'"),
    ):
        lines.append(f"DATABASES['{alias}'] = {{'ENGINE': 'django.db.backends.postgresql', 'NAME': 'x', {place}}}")
    project = description.read(new_project("\n".join(lines)))
    facts = inspection.inspect(project)
    assert facts.poolers == {"default": "127.0.0.1:6432", "named": "aws-0-eu.pooler.invalid:5432"}
    items = [item for item in examine(Examination(project, facts, 4, 1)) if item.id == server_side_cursors.id]
    assert [item.where for item in items] == [line(project.folder, "shop/settings.py", "DATABASES['plain']")] * 2


def test_a_redis_that_knows_no_hello_and_one_that_is_down_are_two_findings(new_project, tmp_path):
    port = free_port()
    cache = (
        "{'BACKEND': 'django.core.cache.backends.redis.RedisCache', 'LOCATION': 'redis://127.0.0.1:%d', 'OPTIONS': %r}"
    )
    caches = {"default": {"protocol": 3}, "older": {"protocol": 2}}
    text = ", ".join(f"{alias!r}: {cache % (port, options)}" for alias, options in caches.items())
    folder = new_project(f"CACHES = {{{text}}}")
    argv = ["redis-server", "--port", str(port), "--save", "", "--dir", str(tmp_path), "--rename-command", "HELLO", ""]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, env={"PATH": os.environ["PATH"]}) as server:
        try:
            until(lambda: port in listening(), "redis listens")
            items = findings_of(folder)
        finally:
            server.terminate()
    assert items["redis-hello"] == line(folder, "shop/settings.py", "CACHES")
    assert "service-down" not in items
