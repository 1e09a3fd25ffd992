"""The undocumented parts of Django and pymemcache that the app uses: a test fails when one of them changes."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.cache.backends.db import DatabaseCache
from django.core.cache.backends.filebased import FileBasedCache
from django.core.cache.backends.memcached import PyMemcacheCache
from django.core.cache.backends.redis import RedisCache
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware, get_token
from django.middleware.gzip import GZipMiddleware
from django.middleware.http import ConditionalGetMiddleware
from django.test import RequestFactory
from django.utils.functional import SimpleLazyObject, empty
from pymemcache.client.hash import HashClient

from benchapp.caching import private_apis
from benchapp.caching.private_apis.django_backends import SharedMemcachedCache
from benchapp.caching.watched import Reads, Watch

try:
    from django.utils.csp import LazyNonce
except ImportError:

    class LazyNonce(SimpleLazyObject):
        """As Django has it from 6.0 on, and django-csp before."""

        def __init__(self) -> None:
            super().__init__(lambda: "abc")

        def __bool__(self) -> bool:
            return self._wrapped is not empty


OF_EACH_REQUEST = [
    SessionMiddleware,
    CommonMiddleware,
    CsrfViewMiddleware,
    AuthenticationMiddleware,
    MessageMiddleware,
    XFrameOptionsMiddleware,
    ConditionalGetMiddleware,
    GZipMiddleware,
]


# Documented by Django, in spite of their names.
DOCUMENTED = {"_meta", "_base_manager", "_default_manager"}


def test_other_modules_use_no_private_attributes_of_django():
    caching = Path(private_apis.__file__).parents[1]
    own = {path for path in caching.rglob("*.py") if path.parent.name != "private_apis"}
    assert len(own) > 20
    uses = []
    for path in own:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr not in DOCUMENTED and is_of_another(node):
                uses.append(f"{path.relative_to(caching)}: {ast.unparse(node)}")
    assert uses == []


def is_of_another(node: ast.Attribute) -> bool:
    """True for a private attribute of something else than the object itself."""
    is_private = node.attr.startswith("_") and not node.attr.startswith("__")
    return is_private and ast.unparse(node.value) not in ("self", "cls")


@pytest.mark.django_db(transaction=True)
def test_a_connection_knows_what_it_calls_after_the_commit():
    with transaction.atomic():
        assert not private_apis.commits_later(connection)
        transaction.on_commit(lambda: None)
        assert private_apis.commits_later(connection)
    assert not private_apis.commits_later(connection)


def test_urls_without_languages_have_none():
    assert not private_apis.has_language_in_urls("config.urls")


@pytest.mark.parametrize("uses", [True, False])
def test_a_token_that_a_view_uses_is_known_before_its_cookie_is_set(uses: bool):
    def view(request: HttpRequest) -> HttpResponse:
        if uses:
            get_token(request)
        known.append(private_apis.sets_csrf_cookie(request))
        return HttpResponse()

    known: list[bool] = []
    response = CsrfViewMiddleware(view)(RequestFactory().get("/"))
    assert known == [bool(response.cookies)] == [uses]


def test_a_nonce_is_known_once_a_page_has_it():
    request = RequestFactory().get("/")
    assert not private_apis.uses_nonce(request)
    request._csp_nonce = LazyNonce()
    assert not private_apis.uses_nonce(request)
    assert str(request._csp_nonce)
    assert private_apis.uses_nonce(request)
    request._csp_nonce = "abc"
    assert private_apis.uses_nonce(request), "as django-csp has it"


def watched_by(of_django: dict[str, int], headers: dict[str, str], kinds: list[type], view=HttpResponse) -> Reads:
    """The reads of a request that these middleware classes, and then a view, see."""
    request = RequestFactory().get("/", headers=headers)
    reads = Reads(of_django, frozenset())
    watch = Watch(request, reads)

    def reached(request: HttpRequest) -> HttpResponse:
        reads.has_reached_view = True
        return view(request)

    layered = reached
    for kind in reversed(kinds):
        layered = kind(layered)
    layered(request)
    watch.end()
    return reads


def names_of(kinds: list[type]) -> list[str]:
    return [f"{kind.__module__}.{kind.__qualname__}" for kind in kinds]


@pytest.mark.parametrize("prepend_www", [False, True])
@pytest.mark.parametrize("cookie", ["", "csrftoken=" + "a" * 32])
def test_the_middleware_of_django_reads_what_is_known_and_no_more(prepend_www: bool, cookie: str, settings):
    settings.PREPEND_WWW, settings.ALLOWED_HOSTS, settings.CACHING_SCHEME = prepend_www, ["www.a.test"], ""
    headers = {"host": "www.a.test", "cookie": cookie}
    known = private_apis.reads_of_django(names_of(OF_EACH_REQUEST))
    assert watched_by(known, headers, OF_EACH_REQUEST).names == set()
    assert watched_by({}, headers, OF_EACH_REQUEST).names == set(known)
    one_less = {name: count - 1 for name, count in known.items()}
    assert watched_by(one_less, headers, OF_EACH_REQUEST).names == set(known)


def shows_all(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"{request.get_host()} {request.META.get('HTTP_USER_AGENT')} {request.COOKIES['csrftoken']}")


def test_others_that_read_what_django_reads_are_noted(settings):
    settings.ALLOWED_HOSTS = ["a.test"]
    headers = {"host": "a.test", "cookie": f"csrftoken={'a' * 32}"}
    read = {"host", "user-agent", "cookie:csrftoken"}
    for kinds in (OF_EACH_REQUEST, [CommonMiddleware, CsrfViewMiddleware]):
        known = private_apis.reads_of_django(names_of(kinds))
        assert watched_by(known, headers, kinds, shows_all).names == read
    # The reads of middleware that is not there belong to nobody else.
    assert watched_by(private_apis.reads_of_django([]), headers, [], shows_all).names == read


def test_middleware_that_responds_before_django_s_own_has_read_has_none_of_its_reads(settings):
    settings.ALLOWED_HOSTS = ["a.test"]

    class Shows:
        def __init__(self, get_response):
            pass

        def __call__(self, request: HttpRequest) -> HttpResponse:
            return shows_all(request)

    headers = {"host": "a.test", "cookie": f"csrftoken={'a' * 32}"}
    known = private_apis.reads_of_django(names_of(OF_EACH_REQUEST))
    assert watched_by(known, headers, [Shows, *OF_EACH_REQUEST]).names >= {"host", "user-agent", "cookie:csrftoken"}


def test_a_site_that_refuses_browsers_has_no_page_for_all_of_them(settings):
    settings.ALLOWED_HOSTS, settings.DISALLOWED_USER_AGENTS = ["a.test"], [re.compile("^Crawler")]
    known = private_apis.reads_of_django(names_of(OF_EACH_REQUEST))
    headers = {"host": "a.test", "user-agent": "Mozilla/5.0"}
    assert watched_by(known, headers, OF_EACH_REQUEST).names == {"user-agent"}


def test_a_subclass_that_may_show_what_it_reads_is_not_django_s_own():
    class Own(CommonMiddleware):
        def process_request(self, request: HttpRequest) -> None:
            super().process_request(request)

    private = f"{__name__}.OwnCommonMiddleware"
    globals()["OwnCommonMiddleware"] = Own
    assert private_apis.reads_of_django([private]) == {}


@pytest.mark.parametrize(
    ("owner", "name", "parameters"),
    [
        (DatabaseCache, "_base_set", ["self", "mode", "key", "value", "timeout"]),
        (FileBasedCache, "_createdir", ["self"]),
        (FileBasedCache, "_cull", ["self"]),
        (HashClient, "_safely_run_func", ["self", "client", "func", "default_val", "args", "kwargs"]),
        (HashClient, "_safely_run_set_many", ["self", "client", "values", "args", "kwargs"]),
    ],
)
def test_overridden_methods_are_those_that_are_called(owner: type, name: str, parameters: list[str]):
    assert list(inspect.signature(getattr(owner, name)).parameters) == parameters


def test_attributes_of_backends(tmp_path):
    memcached = PyMemcacheCache("127.0.0.1:1;127.0.0.1:2", {"OPTIONS": {"no_delay": True}})
    assert memcached.client_servers == ["127.0.0.1:1", "127.0.0.1:2"]
    assert memcached._options["no_delay"] is True
    assert RedisCache("redis://a;redis://b", {})._servers == ["redis://a", "redis://b"]
    database = DatabaseCache("pages", {})
    assert (database._table, database.cache_model_class._meta.db_table) == ("pages", "pages")
    assert FileBasedCache(str(tmp_path), {})._dir == str(tmp_path)


def test_the_client_of_one_memcached():
    from pymemcache.client.base import PooledClient

    cache = SharedMemcachedCache("127.0.0.1:1", {})
    assert isinstance(cache.only_client, PooledClient)
    assert cache.only_client.server == ("127.0.0.1", 1)
    # Nothing listens there.
    assert cache.append("key", b"value") is False
