"""What the app uses of Django and pymemcache beyond their documentation: a test fails when one of these changes."""

from __future__ import annotations

import inspect

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
from pymemcache.client.hash import HashClient

from benchapp.caching import private_apis
from benchapp.caching.private_apis.django_backends import SharedMemcachedCache
from benchapp.caching.watched import Reads, Watch

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


@pytest.mark.parametrize("prepend_www", [False, True])
@pytest.mark.parametrize("cookie", ["", "csrftoken=" + "a" * 32])
def test_the_middleware_of_django_reads_what_is_known_and_no_more(prepend_www: bool, cookie: str, settings):
    settings.PREPEND_WWW, settings.ALLOWED_HOSTS, settings.CACHING_SCHEME = prepend_www, ["www.a.test"], ""
    headers = {"host": "www.a.test", "cookie": cookie}
    for of_django, read in ((private_apis.reads_of_django(), set()), ({}, {*private_apis.reads_of_django()})):
        request = RequestFactory().get("/", headers=headers)
        reads = Reads(of_django, frozenset())
        watch = Watch(request, reads, "")
        laid = lambda _: HttpResponse()  # noqa: E731
        for middleware in reversed(OF_EACH_REQUEST):
            laid = middleware(laid)
        laid(request)
        watch.end()
        assert reads.names == read


def test_others_that_read_what_django_reads_are_noted(settings):
    settings.ALLOWED_HOSTS = ["a.test"]
    request = RequestFactory().get("/", headers={"host": "a.test", "cookie": f"csrftoken={'a' * 32}"})
    reads = Reads(private_apis.reads_of_django(), frozenset())
    Watch(request, reads, "")
    CommonMiddleware(lambda _: HttpResponse())(request)
    request.get_host(), request.META.get("HTTP_USER_AGENT"), request.COOKIES["csrftoken"]
    assert reads.names == {"host", "user-agent", "cookie:csrftoken"}


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
