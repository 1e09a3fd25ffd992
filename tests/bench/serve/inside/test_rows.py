"""The probes write only their own rows, invalidate after each write, and leave nothing behind."""

from __future__ import annotations

import json
import time
from importlib import import_module, reload

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import clear_url_caches

from bench.serve.inside.site import render_gate
from bench.serve.inside.site import rows as probes
from benchapp.caching.invalidation import pages_invalidated
from benchapp.models import Author, Comment, Post

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def client(site_with):
    """A client of a site with the probes on."""
    with site_with(BENCHAPP_PROBES="1"):
        _forget_urls()
        yield Client()
    _forget_urls()


def _forget_urls() -> None:
    clear_url_caches()
    reload(import_module("config.urls"))


@pytest.fixture
def invalidated(client, settings):
    """The invalidations that the layers receive."""
    # Without a layer no write is watched.
    settings.CACHING_LAYERS = {"page-cache": {}}
    received = []

    def receive(stale, **kwargs):
        received.append(stale)

    pages_invalidated.connect(receive)
    yield received
    pages_invalidated.disconnect(receive)


def counted():
    return [model.objects.count() for model in apps.get_models()]


def write(client, state, what):
    return client.post(f"/__probe__/rows/{state['author']}/{what}/").json()


def test_new_rows_can_be_read_and_are_gone_after_their_removal(client, rows):
    before = counted()
    state = client.post("/__probe__/rows/").json()
    home, post = client.get("/").content.decode(), client.get(state["post_page"]).content.decode()
    assert state["title"] in home
    assert state["totals"] in home
    assert state["comment"] in post
    assert write(client, state, "remove")["title"] is None
    assert counted() == before
    assert client.get(state["post_page"]).status_code == 404


@pytest.mark.parametrize("what", ["edit", "update"])
def test_a_change_shows_and_invalidates_its_pages(client, rows, invalidated, what):
    state = client.post("/__probe__/rows/").json()
    invalidated.clear()
    new = write(client, state, what)
    assert new["title"] != state["title"]
    assert new["title"] in client.get(state["probe_page"]).content.decode()
    for path in ("/", "/posts/", "/comments/", state["post_page"], state["author_page"], state["probe_page"]):
        assert any(stale.covers(path) for stale in invalidated), path


@pytest.mark.parametrize("what", ["update-silently", "delete-silently", "remove-silently"])
def test_a_silent_write_invalidates_nothing(client, rows, invalidated, what):
    before = counted()
    state = client.post("/__probe__/rows/").json()
    invalidated.clear()
    title = write(client, state, what)["title"]
    assert invalidated == []
    response = client.get(state["post_page"])
    if what == "update-silently":
        assert title != state["title"] and title in response.content.decode()
    else:
        assert (title, response.status_code) == (None, 404)
    if what != "remove-silently":
        write(client, state, "remove")
    assert counted() == before


def test_a_write_that_is_rolled_back_changes_and_invalidates_nothing(client, rows, invalidated):
    state = client.post("/__probe__/rows/").json()
    invalidated.clear()
    result = write(client, state, "roll-back")
    never = result.pop("never")
    assert result | {"never": []} == state
    assert invalidated == []
    # The response names the written texts, so that pages can be searched for them.
    assert len(set(never)) == 3
    assert not set(never) & set(map(str, state.values()))


@pytest.mark.parametrize("what", ["rename", "remove"])
def test_a_change_of_an_author_invalidates_the_posts_too(client, rows, invalidated, what):
    state = client.post("/__probe__/rows/").json()
    invalidated.clear()
    new = write(client, state, what)
    assert new["name"] != state["name"]
    assert state["name"] not in client.get(state["post_page"]).content.decode()
    for path in ("/", "/posts/", "/posts/page/2/", "/authors/", state["post_page"], state["author_page"]):
        assert any(stale.covers(path) for stale in invalidated), path


def test_other_rows_cannot_be_written(client):
    author = Author.objects.create(name="probe-", city="x")
    Post.objects.create(author=author, title="real", body="x")
    assert client.post(f"/__probe__/rows/{author.pk}/delete/").status_code == 404
    assert Post.objects.get().title == "real"


def test_only_rows_of_probes_are_removed(client, rows):
    before = counted()
    client.post("/__probe__/rows/")
    assert probes.remove_all() == 1
    assert counted() == before
    assert Comment.objects.count() == 60


def test_a_write_needs_a_token(site_with):
    with site_with(BENCHAPP_PROBES="1"):
        _forget_urls()
        assert Client(enforce_csrf_checks=True).post("/__probe__/rows/").status_code == 403
    _forget_urls()


def test_the_command_removes_the_rows_of_probes(client, rows, capsys):
    client.post("/__probe__/rows/")
    call_command("proberows", "remove")
    assert json.loads(capsys.readouterr().out) == {"removed": 1}


def test_the_caches_of_pages_are_filled(client):
    assert client.post("/__probe__/fill/").json() == {"caches": 2}


def test_a_gate_is_of_one_database_and_closes_after_one_that_was_left_closed(monkeypatch):
    render_gate.close(7)
    render_gate.close(7)
    with monkeypatch.context() as patched:
        patched.setitem(connection.settings_dict, "NAME", "another")
        begun = time.monotonic()
        render_gate.wait_at(7)
        assert time.monotonic() - begun < render_gate.MAX_WAIT_S / 2
    begun = time.monotonic()
    render_gate.wait_at(7)
    assert time.monotonic() - begun >= render_gate.MAX_WAIT_S
    render_gate.reopen(7)
