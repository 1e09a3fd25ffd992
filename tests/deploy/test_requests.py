"""Requests about which servers differ mean the same to every project, or are refused, or the server declares it."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import httpx2
import pytest

from bench.serve.catalog import catalog, compatibility
from bench.serve.deployment import deployment
from bench.serve.deployment.case import must_resolve
from bench.serve.project import commands
from bench.serve.project.opened import UnderTest, open_project
from tests.deploy import few
from tests.deploy.running import ONE, runnable
from tests.projects import write

pytestmark = pytest.mark.servers

SAID = """
[tool.benchapp]
health = "/health/"
"""
URLS = """
from django.http import HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt


@csrf_exempt
def form(request):
    return HttpResponse("form of " + request.POST.get("name", "nobody"))


urlpatterns = [
    path("", lambda request: HttpResponse("home " * 4000)),
    path("form/", form),
    path("health/", lambda request: HttpResponse("well")),
    path("scheme/", lambda request: HttpResponse(request.scheme)),
]
"""
STACKS = list(catalog.read().stacks)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
UNREAD_BYTES = 1_000_000
TIMES = 4


def declares(stack: str, check: str) -> bool:
    """True if a stack or a server of it declares the check as not supported."""
    return check in {item.check for item in compatibility.declared((), catalog.read().stacks[stack])}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> UnderTest:
    opened = open_project(write(tmp_path_factory.mktemp("requests") / "shop", tmp_path_factory, "", SAID, URLS))
    commands.warm_up(opened)
    return opened


@pytest.fixture(scope="module")
def url(request: pytest.FixtureRequest, shop: UnderTest) -> Iterator[str]:
    """The URL of one deployment of the stack."""
    runnable(request.param)
    with deployment.deployed(must_resolve(shop, request.param, "none", changes=ONE)) as running:
        yield running.url


def over(stacks: list[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("url", few.few(stacks, few.of_stack), indirect=True)


@over([stack for stack in STACKS if not declares(stack, "chunked-body")])
def test_a_form_in_chunks_arrives_whole_or_is_refused(url):
    sent = httpx2.post(f"{url}/form/", content=iter([b"name=", b"somebody"]), headers=FORM, timeout=30)
    assert sent.status_code in (400, 411) or sent.text == "form of somebody"


@over([stack for stack in STACKS if not declares(stack, "upload")])
def test_a_body_that_no_view_reads_is_refused_by_the_project(url):
    """Django refuses a form without a token before anything reads it; the client sees that."""
    for _ in range(TIMES):
        assert httpx2.post(url, content=b"x" * UNREAD_BYTES, timeout=30).status_code == 403


@over(STACKS)
def test_a_response_to_head_leaves_nothing_for_the_next_request(url):
    with httpx2.Client(base_url=url, timeout=10) as client:
        for _ in range(TIMES):
            assert (client.head("/").status_code, client.get("/health/").text) == (200, "well")


@over(STACKS)
def test_a_broken_escape_is_never_the_home_page(url):
    for path in ("/%", "/%zz/"):
        parts = httpx2.URL(url)
        connection = http.client.HTTPConnection(parts.host, parts.port, timeout=30)
        connection.request("GET", path)
        assert connection.getresponse().status in (400, 404), path
        connection.close()


@over(STACKS)
def test_no_header_of_a_client_says_that_it_came_over_tls(url):
    for name in ("X-Forwarded-Proto", "X_Forwarded_Proto"):
        assert httpx2.get(f"{url}/scheme/", headers={name: "https"}, timeout=30).text == "http"
