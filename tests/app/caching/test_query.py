"""Query strings: which are part of a page's name, which are taken away, and which pass the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.middleware.common import CommonMiddleware
from django.test import AsyncRequestFactory, RequestFactory

from benchapp.caching.invalidation import StalePages, pages_invalidated
from tests.app.caching.layers import HTML, INSIDE, ActiveLayer, View, rendering

CAMPAIGN = "utm_source=news&utm_campaign=a%20b&gclid=1&fbclid=2&msclkid=3&mc_cid=4&_gl=5"


@pytest.fixture
def cached(active_layer: Callable, settings) -> Iterator[ActiveLayer]:
    """The layer with two named parameters."""
    with active_layer("page-cache") as layer:
        settings.CACHING_QUERY = ["page", "q"]
        yield layer


def shows(request: HttpRequest) -> HttpResponse:
    """All that a view can learn of the query string, and a number of the rendering."""
    values = [request.GET.urlencode(), request.META["QUERY_STRING"], request.get_full_path()]
    values += [request.META.get(name, "") for name in ("REQUEST_URI", "RAW_URI")]
    if isinstance(request, ASGIRequest):
        values.append(request.scope["query_string"].decode())
    return HttpResponse(" ".join(values), HTML)


def page(layered: View, query: str, **more: str) -> str:
    uri = f"/a/?{query}" if query else "/a/"
    request = RequestFactory().get("/a/", QUERY_STRING=query, REQUEST_URI=uri, RAW_URI=uri, **more)
    content = layered(request).content.decode()
    # A log on the way out has what the visitor wrote.
    assert (request.META["QUERY_STRING"], request.META["REQUEST_URI"]) == (query, uri)
    fresh = RequestFactory().get("/a/", QUERY_STRING=query)
    assert request.get_full_path() == fresh.get_full_path()
    assert request.GET == fresh.GET
    return content


@pytest.mark.parametrize(
    ("queries", "name"),
    [
        (["", CAMPAIGN, "utm_source=", "utm%5Fsource=x", "gclid", "utm_x=1&utm_x=2"], ""),
        (["page=2", f"page=2&{CAMPAIGN}", f"{CAMPAIGN}&page=2", "p%61ge=2", "page=%32"], "page=2"),
        (["page=2&q=x", "q=x&page=2", "q=x&utm_source=a&page=2", "&q=x&&page=2&"], "page=2&q=x"),
        (["q=a+b", "q=a%20b"], "q=a+b"),
        (["page=", "page", "page=&utm_source=x"], "page="),
        (["q=%C3%A9", "q=\u00e9".encode().decode("latin-1")], "q=%C3%A9"),
        (["q=a%26page%3D2"], "q=a%26page%3D2"),
        (["q=%2B"], "q=%2B"),
    ],
)
def test_spellings_of_one_page_share_it_and_show_only_its_name(cached: ActiveLayer, queries: list[str], name: str):
    layered = cached.over(rendering())
    assert len({page(layered, query) for query in [*queries, *queries]}) == 1
    full = f"/a/?{name}" if name else "/a/"
    layered = cached.over(shows)
    for query in queries:
        pages_invalidated.send(sender=StalePages, stale=StalePages(frozenset({"/a/"})))
        assert page(layered, query).split(" ") == [name, name, full, full, full]


def test_different_values_are_different_pages(cached: ActiveLayer):
    layered = cached.over(rendering())
    queries = [
        "",
        "page=1",
        "page=2",
        "page=",
        "page=2&q=",
        "page=2&q=x",
        "q=x",
        "q=X",
        "q=x+",
        "q=page%3D2",
        "page=02",
    ]
    pages = [page(layered, query) for query in queries]
    assert len(set(pages)) == len(queries)
    assert [page(layered, query) for query in queries] == pages


@pytest.mark.parametrize(
    "query",
    ["a=1", "page=2&a=1", "Page=2", "UTM_source=x", "page=1&page=2", "page=1&page=1", "page[]=1", "utm=1", "page;q=1"],
)
def test_other_query_strings_pass_as_the_visitor_wrote_them(cached: ActiveLayer, query: str):
    layered = cached.over(rendering())
    assert page(layered, query) != page(layered, query)
    assert page(cached.over(shows), query).split(" ")[1] == query


def test_a_semicolon_hides_no_parameter(cached: ActiveLayer):
    layered = cached.over(lambda request: HttpResponse(request.GET.get("page"), HTML))
    assert page(layered, "page=1;page=2&utm_source=x") == "1;page=2"
    assert page(layered, "utm_source=x;page=2&page=1") == "1"
    assert page(layered, "page=1") == "1"


def test_too_many_parameters_and_a_charset_of_the_client_pass(cached: ActiveLayer, settings):
    layered = cached.over(rendering())
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 2
    request = RequestFactory().get("/a/?utm_a=1&utm_b=2&utm_c=3")
    assert layered(request).content != layered(RequestFactory().get("/a/?utm_a=1&utm_b=2&utm_c=3")).content
    charset = {"CONTENT_TYPE": "text/plain; charset=latin-1"}
    first = layered(RequestFactory().get("/a/?q=%E9", **charset)).content
    assert layered(RequestFactory().get("/a/?q=%E9", **charset)).content != first


def test_no_parameter_is_named_by_default_and_campaigns_are_ignored(active_layer: Callable):
    with active_layer("page-cache") as layer:
        view = layer.over(rendering())
        assert page(view, CAMPAIGN) == page(view, "")
        assert page(view, "page=2") != page(view, "page=2")


def test_a_project_has_its_own_list_of_ignored_parameters(cached: ActiveLayer, settings):
    settings.CACHING_QUERY_IGNORED = ["ref_*"]
    layered = cached.over(rendering())
    assert page(layered, "ref_a=1") == page(layered, "ref_b=1")
    assert page(layered, "utm_source=1") != page(layered, "utm_source=1")


def test_a_write_drops_all_pages_of_a_path(cached: ActiveLayer):
    layered, queries = cached.over(rendering()), ["", "page=2", "page=3&q=x"]
    before = [page(layered, query) for query in queries]
    for stale in (StalePages(frozenset({"/a/"})), StalePages(prefixes=frozenset({"/a/"}))):
        pages_invalidated.send(sender=StalePages, stale=stale)
        after = [page(layered, query) for query in queries]
        assert not set(before) & set(after)
        before = after


def test_a_signed_in_visitor_keeps_all_parameters(cached: ActiveLayer):
    query = f"page=2&{CAMPAIGN}"
    assert page(cached.over(shows), query, HTTP_COOKIE="sessionid=x").split(" ")[1] == query


def test_a_redirect_keeps_the_parameters_of_its_visitor(cached: ActiveLayer, settings):
    settings.APPEND_SLASH, settings.ROOT_URLCONF = True, "config.urls"
    layered = cached.over(lambda request: HttpResponse(status=404), CommonMiddleware)
    response = layered(RequestFactory().get("/posts?utm_source=news"))
    assert (response.status_code, response["Location"]) == (301, "/posts/?utm_source=news")
    away = cached.over(lambda request: HttpResponseRedirect(f"/b/?{request.META['QUERY_STRING']}"))
    assert away(RequestFactory().get("/a/?gclid=1"))["Location"] == "/b/?gclid=1"


def test_what_is_taken_away_is_in_no_name_of_a_request_over_asgi(cached: ActiveLayer):
    layered = cached.over(shows)
    request = AsyncRequestFactory().get("/a/?utm_source=x&page=2")
    request.headers  # noqa: B018  made before, of the visitor's own
    assert layered(request).content.decode().split() == ["page=2", "page=2", "/a/?page=2", "page=2"]
    assert request.scope["query_string"] == "utm_source=x&page=2"


@pytest.mark.parametrize("name", [name for name in INSIDE if name != "page-cache"])
def test_a_store_that_a_server_reads_has_pages_without_query_strings_only(active_layer: Callable, settings, name: str):
    settings.CACHING_QUERY = ["page"]
    with active_layer(name) as layer:
        view = layer.over(rendering())
        for query in ("page=2", "utm_source=x"):
            assert page(view, query) != page(view, query)
