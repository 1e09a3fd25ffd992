"""Small right projects of unusual kinds: no check may charge their stack. `python -m tests.kinds DIR [NAME ...]` makes
them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HEAD = """
import asyncio
import random
import secrets
import time

from django.conf.urls.i18n import i18n_patterns
from django.core.cache import cache
from django.http import HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.shortcuts import render
from django.urls import include, path

PAGE = "<!doctype html><html lang='en'><head><title>A page</title></head><body><p>{}</p>{}</body></html>"


def page(text, **headers):
    return HttpResponse(PAGE.format(text, "<p>words that stay</p>" * 20), headers=headers)


"""
FORM = """<!doctype html><html lang="en"><title>Log in</title><body>
<form method="post">{% csrf_token %}{{ form.as_p }}<button>Log in</button></form></body></html>
"""
ACCOUNTS = """
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import LoginView


@login_required
def account(request):
    return page(f"Signed in as {request.user.get_username()}.")


"""
WITH_FORM = "TEMPLATES[0]['DIRS'] = [BASE_DIR]\nLOGIN_URL, LOGIN_REDIRECT_URL = '/log-in/', '/me/'\n"
LOGIN = """
[tool.benchapp.login]
url = "/log-in/"
page = "/me/"
proof = "Signed in as {name}."
"""


@dataclass(frozen=True)
class Kind:
    """A project; `stack` serves it.

    urls      of its URLconf, behind HEAD
    settings  appended to those of `startproject`
    lines     in [tool.benchapp]
    files     others, by path
    """

    urls: str
    settings: str = ""
    lines: str = 'public = ["/"]\n'
    files: dict[str, str] = field(default_factory=dict)
    stack: str = "nginx-gunicorn"


HEADERS = """
import secrets
import time


def own(get_response):
    def middleware(request):
        request.nonce, begun = secrets.token_urlsafe(12), time.monotonic()
        response = get_response(request)
        response["Content-Security-Policy"] = f"script-src 'nonce-{request.nonce}'"
        response["X-Request-Id"] = secrets.token_hex(8)
        response["Server-Timing"] = f"app;dur={(time.monotonic() - begun) * 1000:.3f}"
        response["X-Rendered-At"] = time.strftime("%H:%M:%S")
        return response

    return middleware
"""
WALL = """
from django.http import HttpResponseRedirect


def only_members(get_response):
    def middleware(request):
        if request.user.is_authenticated or request.path in ("/log-in/", "/up/"):
            return get_response(request)
        return HttpResponseRedirect(f"/log-in/?next={request.path}")

    return middleware
"""
SPOKEN = """
def in_english(get_response):
    def middleware(request):
        request.region = request.headers.get("Accept-Language", "none") if request.path == "/region/" else ""
        request.META["HTTP_ACCEPT_LANGUAGE"] = "en"
        return get_response(request)

    return middleware
"""
KINDS = {
    "noslash": Kind(
        """
urlpatterns = [
    path("", lambda request: page("home")),
    path("about", lambda request: page("about")),
    path("a~b", lambda request: page("a tilde")),
    path("user@home", lambda request: page("an address")),
    path("caf\\u00e9/cr\\u00e8me", lambda request: page("letters")),
]
""",
        "APPEND_SLASH = False\n",
        'public = ["/", "/about", "/a~b", "/user@home", "/caf%C3%A9/cr%C3%A8me"]\n',
    ),
    "csrfsession": Kind(
        ACCOUNTS
        + """
urlpatterns = [
    path("", lambda request: page("home")),
    path("log-in/", LoginView.as_view(template_name="form.html")),
    path("me/", account),
]
""",
        WITH_FORM
        + "CSRF_USE_SESSIONS = True\nSESSION_ENGINE = 'django.contrib.sessions.backends.signed_cookies'\n"
        + "SESSION_COOKIE_NAME = 'sid.app+1'\n",
        'public = ["/"]\n' + LOGIN,
        {"form.html": FORM},
    ),
    "nodb": Kind(
        'urlpatterns = [path("", lambda request: page("home")), path("b/", lambda request: page("b"))]\n',
        "INSTALLED_APPS, MIDDLEWARE, DATABASES = [], [], {}\n",
        'public = ["/", "/b/"]\n',
    ),
    "ownheaders": Kind(
        """
urlpatterns = [path("", lambda request: page(f"<script nonce={request.nonce}>1</script>"))]
""",
        "MIDDLEWARE.append('shop.headers.own')\n",
        files={"shop/headers.py": HEADERS},
    ),
    "gzipetag": Kind(
        'urlpatterns = [path("", lambda request: page("home")), path("b/", lambda request: page("b"))]\n',
        "MIDDLEWARE[:0] = ['django.middleware.gzip.GZipMiddleware', "
        "'django.middleware.http.ConditionalGetMiddleware']\n",
        'public = ["/", "/b/"]\n',
    ),
    "i18n": Kind(
        """
from django.utils.translation import get_language, gettext


def home(request):
    return page(f"{get_language()}: {gettext('Yes')}")


urlpatterns = i18n_patterns(path("", home))
""",
        "MIDDLEWARE.insert(2, 'django.middleware.locale.LocaleMiddleware')\n"
        "LANGUAGES = [('en', 'English'), ('de', 'Deutsch')]\n",
        'health = "/en/"\npublic = ["/en/", "/de/"]\n',
    ),
    "languages": Kind(
        """
from django.utils.translation import gettext

urlpatterns = [
    path("", lambda request: page(gettext("Yes"))),
    path("region/", lambda request: page(request.region)),
]
""",
        "MIDDLEWARE[2:2] = ['shop.spoken.in_english', 'django.middleware.locale.LocaleMiddleware']\n"
        "LANGUAGES = [('en', 'English'), ('de', 'Deutsch')]\n",
        'public = ["/", "/region/"]\n',
        {"shop/spoken.py": SPOKEN},
    ),
    "latin1": Kind(
        """
def coded(charset):
    text = PAGE.format("K\\u00f6ln", "words" * 50)
    return HttpResponse(text.encode(charset), f"text/html; charset={charset}")


def tagged(request):
    text = PAGE.format("K\\u00f6ln", "words").replace("<title>", "<meta charset='iso-8859-1'><title>")
    return HttpResponse(text.encode("iso-8859-1"), "text/html")


urlpatterns = [
    path("", lambda request: page("K\\u00f6ln")),
    path("tagged/", tagged),
    path("no-such/", lambda request: HttpResponse(b"K\\xf6ln", "text/html; charset=no-such")),
    path("windows-1252/", lambda request: coded("windows-1252")),
    path("utf-16/", lambda request: coded("utf-16")),
]
""",
        "DEFAULT_CHARSET = 'iso-8859-1'\n",
        'public = ["/", "/windows-1252/", "/utf-16/", "/tagged/", "/no-such/"]\n',
    ),
    "asynchronous": Kind(
        """
async def home(request):
    await asyncio.sleep(0.001)
    return page("home")


async def streamed(request):
    async def pieces():
        for piece in PAGE.format("streamed", "words" * 90).split(" "):
            await asyncio.sleep(0)
            yield piece + " "

    return StreamingHttpResponse(pieces())


urlpatterns = [path("", home), path("streamed/", streamed)]
""",
        lines='public = ["/", "/streamed/"]\n',
        stack="nginx-uvicorn",
    ),
    "sizes": Kind(
        """
urlpatterns = [
    path("", lambda request: page("home")),
    path("empty/", lambda request: HttpResponse()),
    path("bare/", lambda request: HttpResponse(PAGE.format("no charset", ""), "text/html")),
    path("large/", lambda request: page("words " * 200_000)),
]
""",
        lines='public = ["/", "/bare/", "/empty/", "/large/"]\n',
    ),
    "clock": Kind(
        """
ITEMS = [f"<li>item {number}</li>" for number in range(20)]


def home(request):
    return page(time.strftime("%H:%M:%S"))


def order(request):
    return page("<ul>" + "".join(random.sample(ITEMS, 20)) + "</ul>")


def pair(request):
    return page("<ul>" + "".join(random.sample(ITEMS[:2], 2)) + "</ul>")


def advertised(request):
    return page(f"<a href='/advertisement/{random.randrange(10 ** random.randrange(1, 9))}/'>buy</a>")


urlpatterns = [path("", home), path("order/", order), path("pair/", pair), path("advertised/", advertised)]
""",
        lines='public = ["/", "/order/", "/pair/", "/advertised/"]\n',
    ),
    "loginall": Kind(
        ACCOUNTS
        + """
urlpatterns = [
    path("", lambda request: page("home")),
    path("up/", lambda request: HttpResponse("up")),
    path("log-in/", LoginView.as_view(template_name="form.html")),
    path("me/", account),
]
""",
        WITH_FORM + "MIDDLEWARE.append('shop.wall.only_members')\n",
        'health = "/up/"\npublic = ["/log-in/"]\n' + LOGIN,
        {"form.html": FORM, "shop/wall.py": WALL},
    ),
    "redirroot": Kind(
        """
urlpatterns = [
    path("", lambda request: HttpResponseRedirect("/home/")),
    path("home/", lambda request: page("home")),
    path("up/", lambda request: HttpResponse(status=204)),
]
""",
        lines='health = "/up/"\npublic = ["/home/"]\n',
    ),
    "tenants": Kind(
        """
def home(request):
    return page("tenant " + request.META["HTTP_HOST"].split(".")[0])


def seen(request):
    known = cache.get("seen")
    cache.set("seen", True)
    response = page(f"seen {known}")
    response.set_cookie("seen", "1")
    response.xframe_options_exempt = bool(known)
    return response


def agent(request):
    return page(f"{request.META['HTTP_USER_AGENT']} at port {request.get_port()}")


urlpatterns = [path("home/", home), path("home/seen/", seen), path("home/agent/", agent)]
""",
        lines='health = "/home/"\npublic = ["/home/", "/home/seen/", "/home/agent/"]\n',
    ),
}


def make(folder: Path, name: str) -> None:
    """Make the project in a new folder, with an empty database."""
    kind = KINDS[name]
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "django", "startproject", "shop", folder], check=True)
    (folder / "shop" / "urls.py").write_text(HEAD + kind.urls)
    with (folder / "shop" / "settings.py").open("a") as settings:
        settings.write(f"\n{kind.settings}")
    for path, text in kind.files.items():
        (folder / path).write_text(text)
    (folder / "pyproject.toml").write_text(f"[tool.benchapp]\n{kind.lines}")
    if name != "nodb":
        # Those of the tests are the kit's own.
        env = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
        subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=folder, env=env, check=True)


if __name__ == "__main__":
    for chosen in sys.argv[2:] or KINDS:
        make(Path(sys.argv[1]) / chosen, chosen)
