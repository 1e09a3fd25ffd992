"""The page of the visitors: what it says is what rendered it."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.test import RequestFactory

from bench import paths
from bench.measure.faults.fault_context import FILES, FIRST
from bench.measure.faults.visitors import NOBODY, PAGE, parse_page_marker
from bench.serve.inside import release, visitor_pages

ASK = f"""
import django; django.setup()
from django.core.management import call_command
from django.test import Client
call_command("migrate", verbosity=0)
response = Client(SERVER_NAME="127.0.0.1").get({PAGE.format("x")!r})
print(response.headers["Vary"], response.status_code, "Set-Cookie" in response.headers)
print(response.content.decode())
"""


@pytest.fixture(scope="module")
def rendered_page():
    env = {"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "config.settings"}
    env |= {"DATABASE_URL": "sqlite://:memory:", "BENCHAPP_PROBES": "1"}
    done = subprocess.run([sys.executable, "-c", ASK], cwd=paths.KIT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n", 1)


def test_it_is_cacheable_like_an_ordinary_page(rendered_page):
    assert rendered_page[0] == "Cookie 200 False"


def test_it_says_its_versions_its_account_and_its_time(rendered_page):
    code, template, account, rendered, static = parse_page_marker(rendered_page[1])
    assert (code, template, account) == (release.VERSION, release.VERSION, NOBODY)
    assert abs(time.time() - float(rendered)) < 60
    assert static.startswith("/static/probes/release.")


def through(response: HttpResponse, path: str = "/") -> HttpResponse:
    """The middleware's version of a project's response."""
    return visitor_pages.marked(lambda request: response)(RequestFactory().get(path))


def test_a_page_of_a_project_ends_with_the_same_line():
    page = HttpResponse("<p>Prices</p>", headers={"Content-Length": "13"})
    body = through(page).content.decode()
    assert body.startswith("<p>Prices</p>") and parse_page_marker(body)[:3] == (
        release.VERSION,
        release.VERSION,
        NOBODY,
    )
    assert page.headers["Content-Length"] == str(len(page.content))


@pytest.mark.parametrize(
    "response",
    [
        HttpResponse("{}", content_type="application/json"),
        HttpResponse("no", status=404),
        HttpResponse(b"\x1f\x8b", headers={"Content-Encoding": "gzip"}),
        StreamingHttpResponse(["<p>"]),
    ],
    ids=["json", "404", "gzip", "stream"],
)
def test_what_is_no_page_stays_as_it_is(response):
    before = b"".join(response)
    response = through(response)
    assert response.streaming or response.content == before


def test_settings_that_are_no_part_of_the_release_are_reported(monkeypatch):
    monkeypatch.setenv("OVERLAID_SETTINGS", "config.settings")
    assert visitor_pages._version() == release.VERSION
    # As if imported from elsewhere.
    monkeypatch.setenv("OVERLAID_SETTINGS", "os")
    assert visitor_pages._version() == visitor_pages.OUTSIDE
    monkeypatch.setattr(visitor_pages, "VERSION", visitor_pages.OUTSIDE)
    assert parse_page_marker(through(HttpResponse("<p>")).content.decode())[:2] == (
        visitor_pages.OUTSIDE,
        visitor_pages.OUTSIDE,
    )


def test_every_file_of_a_release_has_the_word_for_its_version():
    assert release.VERSION == FIRST
    for name in FILES:
        assert FIRST in (paths.KIT / name).read_text("utf-8"), name
