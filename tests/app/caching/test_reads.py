"""A rendering that reads its visitor, in any way and anywhere, makes the page private, over WSGI and ASGI."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.sites.requests import RequestSite
from django.http import HttpRequest, HttpResponse
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.template import Context, Engine, RequestContext, engines
from django.template.response import TemplateResponse
from django.test import AsyncClient, AsyncRequestFactory, Client, RequestFactory, override_settings
from django.urls import path
from django.utils.functional import SimpleLazyObject

from benchapp.caching.harmless import PAUSE, RESUME, Pause, Resume
from benchapp.caching.middleware import CachingMiddleware, WatchMiddleware
from tests.app.caching.layers import HTML, View, with_layer

# What differs between two visitors.
ADDRESS, COUNTRY = "203.0.113.9", "LI"
# No page is requested twice: a stored one would be given.
NUMBERS = itertools.count(1)
FACTORIES = {"wsgi": RequestFactory, "asgi": AsyncRequestFactory}


def visitor(kind: str) -> HttpRequest:
    headers = {"cf-ipcountry": COUNTRY, "cookie": f"csrftoken={'a' * 32}; utm_campaign=spring; theme=dark"}
    request = FACTORIES[kind]().get(f"/posts/{next(NUMBERS)}/", headers=headers)
    request.META["REMOTE_ADDR"] = ADDRESS
    if kind == "asgi":
        request.scope["client"] = [ADDRESS, 80]
    return request


def context_of(request: HttpRequest) -> str:
    """The page of a template whose context processor has read something."""
    engine = Engine(context_processors=[f"{__name__}.country_processor"])
    return engine.from_string("{{ country }}").render(RequestContext(request))


def country_processor(request: HttpRequest) -> dict[str, Any]:
    return {"country": request.headers.get("CF-IPCountry")}


def template_of(request: HttpRequest) -> str:
    return Engine().from_string("{{ request.META.REMOTE_ADDR }}").render(Context({"request": request}))


READS: dict[str, Callable[[HttpRequest], object]] = {
    "META[]": lambda request: request.META["REMOTE_ADDR"],
    "META.get": lambda request: request.META.get("REMOTE_ADDR"),
    "META in": lambda request: "REMOTE_USER" in request.META,
    "META.items": lambda request: list(request.META.items()),
    "META.values": lambda request: list(request.META.values()),
    "META.copy": lambda request: request.META.copy(),
    "copy(META)": lambda request: copy.copy(request.META)["REMOTE_ADDR"],
    "dict(META)": lambda request: dict(request.META),
    "**META": lambda request: {**request.META},
    "META |": lambda request: request.META | {},
    "deepcopy(COOKIES)": lambda request: copy.deepcopy(request.COOKIES),
    "pickle(COOKIES)": lambda request: pickle.loads(pickle.dumps(request.COOKIES))["theme"],
    "reversed(META)": lambda request: next(reversed(request.META)),
    "str(META)": lambda request: str(request.META),
    "META.pop": lambda request: request.META.pop("REMOTE_HOST", None),
    "vars(request)": lambda request: vars(request)["META"]["REMOTE_ADDR"],
    "copy(request)": lambda request: copy.copy(request).META["REMOTE_ADDR"],
    "META port": lambda request: request.META.get("REMOTE_PORT"),
    "META server": lambda request: request.META["SERVER_NAME"],
    "META protocol": lambda request: request.META.get("SERVER_PROTOCOL"),
    "META certificate": lambda request: request.META.get("SSL_CLIENT_S_DN"),
    "META made by a server": lambda request: request.META.get("GEOIP_COUNTRY_CODE"),
    "META forwarded": lambda request: request.META.get("HTTP_X_FORWARDED_FOR"),
    "META forwarded proto": lambda request: request.META.get("HTTP_X_FORWARDED_PROTO"),
    "META CSRF": lambda request: request.META.get("CSRF_COOKIE"),
    "META cookie": lambda request: request.META.get("HTTP_COOKIE"),
    "headers[]": lambda request: request.headers["CF-IPCountry"],
    "headers.get": lambda request: request.headers.get("cf_ipcountry"),
    "headers in": lambda request: "CF-IPCountry" in request.headers,
    "headers.items": lambda request: list(request.headers.items()),
    "str(headers)": lambda request: str(request.headers),
    "len(headers)": lambda request: len(request.headers),
    "headers forwarded": lambda request: request.headers.get("X-Forwarded-Host"),
    "accepts": lambda request: request.accepts("text/html"),
    "COOKIES[]": lambda request: request.COOKIES["csrftoken"],
    "COOKIES.get": lambda request: request.COOKIES.get("utm_campaign"),
    "get_signed_cookie": lambda request: request.get_signed_cookie("signed", None),
    "template": template_of,
    "context processor": context_of,
}
OF_SCOPE: dict[str, Callable[[Any], object]] = {
    "scope client": lambda request: request.scope["client"],
    "scope headers": lambda request: dict(request.scope["headers"]),
    "scope.get": lambda request: request.scope.get("extensions"),
    # An application around Django's may have written what it read of the visitor.
    "scope state": lambda request: request.scope.get("state"),
    "scope copy": lambda request: dict(request.scope),
    "scope server": lambda request: request.scope.get("server"),
    "environ": lambda request: getattr(request, "environ", request.META)["REMOTE_ADDR"],
}
OF_WSGI = {
    "environ[]": lambda request: request.environ["REMOTE_ADDR"],
    "environ.get": lambda request: request.environ.get("HTTP_CF_IPCOUNTRY"),
    "written address": lambda request: request.environ.get("REQUEST_URI"),
}
CASES = [(kind, name) for kind in FACTORIES for name in READS]
CASES += [("asgi", name) for name in OF_SCOPE] + [("wsgi", name) for name in OF_WSGI]
ALL_READS = READS | OF_SCOPE | OF_WSGI


def page(request: HttpRequest, number: int = 0) -> HttpResponse:
    return HttpResponse("<p>page", HTML)


def is_private(view: View, kind: str, *projects: Callable[[View], View]) -> bool:
    """True if the page of the visitor is private to every cache."""
    return "private" in with_layer(view, *projects)(visitor(kind)).get("Cache-Control", "")


def reading(reads: Callable[[HttpRequest], object]) -> tuple[View, Callable[[View], View], Callable[[View], View]]:
    """A view that reads, middleware that does before it, and middleware that does behind it."""

    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse(f"<p>{reads(request)}", HTML)

    def before(get_response: View) -> View:
        def middleware(request: HttpRequest) -> HttpResponse:
            request.result = reads(request)
            return get_response(request)

        return middleware

    def behind(get_response: View) -> View:
        def middleware(request: HttpRequest) -> HttpResponse:
            response = get_response(request)
            response.content += str(reads(request)).encode()
            return response

        return middleware

    return view, before, behind


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_page_that_read_something_of_its_visitor_is_private(active_layer: Callable, settings, kind: str, name: str):
    view, before, behind = reading(ALL_READS[name])
    django = (CommonMiddleware, CsrfViewMiddleware)
    with active_layer("page-cache"):
        assert not is_private(page, kind, *django)
        assert is_private(view, kind, *django), "in a view"
        assert is_private(page, kind, before, *django), "in middleware"
        assert is_private(page, kind, *django, behind), "on the way out"
        assert is_private(page, kind, Pause, before, Resume, before, *django), "in harmless middleware and in others"
        assert not is_private(page, kind, Pause, before, behind, Resume, *django), "in harmless middleware"
        settings.ALLOWED_HOSTS = [".test", "testserver"]
        assert is_private(view, kind, *django), "in a view of a site with several names"


OF_HOST: dict[str, Callable[[HttpRequest], object]] = {
    "get_host": lambda request: request.get_host(),
    "META": lambda request: request.META.get("HTTP_HOST"),
    "headers": lambda request: request.headers.get("Host"),
    "build_absolute_uri": lambda request: request.build_absolute_uri(),
    "build_absolute_uri of a path": lambda request: request.build_absolute_uri("/a/"),
    "site": lambda request: RequestSite(request).domain,
    "get_port": lambda request: request.get_port(),
    "META port": lambda request: request.META["SERVER_PORT"],
}


@pytest.mark.parametrize("kind", FACTORIES)
@pytest.mark.parametrize("name", OF_HOST)
def test_the_host_is_private_on_a_site_with_several_names(active_layer: Callable, settings, kind: str, name: str):
    view, before, _ = reading(OF_HOST[name])
    with active_layer("page-cache"):
        for names, private in ((["testserver"], False), (["testserver", "b.test"], True), (["*"], True)):
            settings.ALLOWED_HOSTS = names
            assert is_private(view, kind, CommonMiddleware) is private
            assert is_private(page, kind, before, CommonMiddleware) is private
            assert is_private(page, kind, CommonMiddleware, before) is private
            assert not is_private(page, kind, CommonMiddleware)


@pytest.mark.parametrize(("host", "port", "private"), [("testserver", "8000", True), ("testserver", "80", False)])
def test_a_port_of_the_server_that_is_not_that_of_the_host_is_private(
    active_layer: Callable, settings, host: str, port: str, private: bool
):
    settings.ALLOWED_HOSTS = ["testserver"]
    with active_layer("page-cache"):
        settings.CACHING_PORT, settings.SECURE_PROXY_SSL_HEADER = "", ("HTTP_X_FORWARDED_PROTO", "https")
        view = reading(lambda request: request.get_port())[0]
        request = RequestFactory().get(f"/{next(NUMBERS)}/", headers={"host": host}, SERVER_PORT=port)
        response = CachingMiddleware(WatchMiddleware(view))(request)
        assert ("private" in response.get("Cache-Control", "")) is private


OF_SCHEME: dict[str, Callable[[HttpRequest], object]] = {
    "is_secure": lambda request: request.is_secure(),
    "get_port": lambda request: request.get_port(),
    "scheme": lambda request: request.scheme,
    "build_absolute_uri": lambda request: request.build_absolute_uri(),
}


@pytest.mark.parametrize("kind", FACTORIES)
@pytest.mark.parametrize("name", OF_SCHEME)
def test_the_scheme_is_private_where_visitors_may_use_both(active_layer: Callable, settings, kind: str, name: str):
    view, before, _ = reading(OF_SCHEME[name])
    with active_layer("page-cache"):
        for scheme, private in (("http", False), ("", True)):
            settings.CACHING_SCHEME = scheme
            assert is_private(view, kind) is private
            assert is_private(page, kind, before) is private


def test_a_value_computed_further_out_or_in_harmless_middleware_is_noted_when_it_is_read(
    active_layer: Callable,
):
    def accepts(request: HttpRequest) -> HttpResponse:
        return HttpResponse(f"<p>{request.accepts('text/html')}", HTML)

    def log(get_response: View) -> View:
        return lambda request: (request.accepts("text/html"), get_response(request))[1]

    with active_layer("page-cache"):
        inside = CachingMiddleware(Pause(log(Resume(WatchMiddleware(accepts)))))
        request = visitor("wsgi")
        assert request.accepts("text/html")
        assert "private" in CachingMiddleware(WatchMiddleware(accepts))(request)["Cache-Control"]
        assert "private" in inside(visitor("wsgi"))["Cache-Control"]


@pytest.mark.parametrize("kind", FACTORIES)
def test_what_middleware_further_out_has_bound_is_noted_when_a_page_reads_it(active_layer: Callable, kind: str):
    def page_for_country(request: HttpRequest) -> HttpResponse:
        return HttpResponse(f"<p>{request.country}", HTML)

    def further_out(get_response: View) -> View:
        def middleware(request: HttpRequest) -> HttpResponse:
            request.country = SimpleLazyObject(lambda: request.META.get("HTTP_CF_IPCOUNTRY"))
            return get_response(request)

        return middleware

    with active_layer("page-cache"):
        for view, private in ((page_for_country, True), (page, False)):
            response = further_out(CachingMiddleware(WatchMiddleware(view)))(visitor(kind))
            assert ("private" in response.get("Cache-Control", "")) is private


def test_what_is_named_harmless_may_be_read(active_layer: Callable, settings):
    with active_layer("page-cache"):
        settings.CACHING_HARMLESS = ["CF-IPCountry", "cookie:theme", "remote-addr"]
        for reads in (
            lambda request: request.headers["CF-IPCountry"],
            lambda request: request.META["REMOTE_ADDR"],
            lambda request: request.COOKIES.get("theme"),
        ):
            assert not is_private(reading(reads)[0], "wsgi")
        assert is_private(reading(lambda request: request.COOKIES.get("csrftoken"))[0], "wsgi")
        assert is_private(reading(lambda request: request.headers.get("theme"))[0], "wsgi")


@pytest.mark.parametrize("name", ["User-Agent", "Cookie", "Host"])
def test_a_view_may_not_read_what_django_s_middleware_did_not_read_because_it_is_harmless(
    active_layer: Callable, settings, name: str
):
    own = {"User-Agent": "HTTP_USER_AGENT", "Host": "HTTP_HOST"}.get(name)
    view = reading(lambda request: request.META.get(own) if own else request.COOKIES.get("csrftoken"))[0]
    django = (CommonMiddleware, CsrfViewMiddleware)
    with active_layer("page-cache"):
        settings.ALLOWED_HOSTS = [".test", "testserver"]
        settings.CACHING_HARMLESS = [f"{kind.__module__}.{kind.__name__}" for kind in django]
        around = (Pause, CommonMiddleware, Resume, Pause, CsrfViewMiddleware, Resume)
        assert not is_private(page, "wsgi", *around)
        assert is_private(view, "wsgi", *around)


def test_middleware_may_read_what_it_wrote_itself_and_no_visitor_has(active_layer: Callable):
    def write(name: str) -> Callable[[View], View]:
        def middleware(get_response: View) -> View:
            def call(request: HttpRequest) -> HttpResponse:
                request.META[name] = "1"
                return get_response(request)

            return call

        return middleware

    with active_layer("page-cache"):
        for name, private in (("MYSITE_FLAG", False), ("REMOTE_ADDR", True), ("HTTP_X_A", True), ("SERVER_NAME", True)):
            view = reading(lambda request, name=name: request.META[name])[0]
            assert is_private(view, "wsgi", write(name)) is private, name
        assert is_private(reading(lambda request: request.META.get("MYSITE_FLAG"))[0], "wsgi")


class Hooked:
    """Middleware that reads in all its hooks."""

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *args: object) -> None:
        self.read(request)

    def process_template_response(self, request: HttpRequest, response: TemplateResponse) -> TemplateResponse:
        self.read(request)
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse:
        self.read(request)
        return HttpResponse("<p>mended", HTML)

    def read(self, request: HttpRequest) -> None:
        request.META.get("REMOTE_ADDR")


def rendered(request: HttpRequest, number: int) -> HttpResponse:
    return TemplateResponse(request, engines["django"].from_string("<p>page"))


def rendered_by_address(request: HttpRequest, number: int) -> HttpResponse:
    return TemplateResponse(request, engines["django"].from_string("{{ request.META.REMOTE_ADDR }}"))


def failing(request: HttpRequest, number: int) -> HttpResponse:
    raise ValueError("mended by middleware")


urlpatterns = [
    path("plain/<int:number>/", page),
    path("rendered/<int:number>/", rendered),
    path("by-address/<int:number>/", rendered_by_address),
    path("failing/<int:number>/", failing),
]


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_the_hooks_of_harmless_middleware_may_read_and_those_of_others_may_not(active_layer: Callable, client: type):
    outer, inner = (f"benchapp.caching.middleware.{name}Middleware" for name in ("Caching", "Watch"))
    hooked = f"{__name__}.Hooked"

    def private(middleware: list[str], address: str) -> bool:
        with override_settings(MIDDLEWARE=[outer, *middleware, inner], ROOT_URLCONF=__name__):
            response = client().get(f"{address}{next(NUMBERS)}/")
            if client is AsyncClient:
                response = async_to_sync(awaited)(response)
        assert response.status_code == 200
        return "private" in response.get("Cache-Control", "")

    with active_layer("page-cache"):
        for address in ("/plain/", "/rendered/", "/failing/"):
            assert private([hooked], address)
            assert not private([PAUSE, hooked, RESUME], address)
        assert private([PAUSE, hooked, RESUME], "/by-address/")


async def awaited(response: Awaitable[HttpResponse]) -> HttpResponse:
    return await response
