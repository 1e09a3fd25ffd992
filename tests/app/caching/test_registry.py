"""The table of layers: settings, middleware, and the order of invalidation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from django.utils.module_loading import import_string

from benchapp.caching import registry
from benchapp.caching.invalidation import StalePages, pages_invalidated
from benchapp.caching.stores import uwsgi
from tests.app.caching.services import fake_uwsgi

Site = Callable[..., AbstractContextManager[None]]
DEPLOYED = Path(__file__).parents[3] / "deploy" / "layers"


# Of Django itself: no write invalidates them.
STOCK = {"fragments", "view-cache", "site-middleware"}


def test_every_deployed_layer_is_in_the_table():
    deployed = {folder.name for folder in DEPLOYED.iterdir() if folder.is_dir()}
    assert set(registry.LAYERS) == deployed - STOCK - {"none"}


@pytest.mark.parametrize("layer", registry.LAYERS.values(), ids=list(registry.LAYERS))
def test_what_a_layer_names_can_be_imported(layer: registry.Layer):
    for path in filter(None, (layer.purge, layer.entries, *layer.outer)):
        assert callable(import_string(path))


def test_entries_of_active_layers_are_counted_if_only_the_site_reaches_them(
    site_with: Site, monkeypatch: pytest.MonkeyPatch
):
    workers = fake_uwsgi()
    workers.held["pages"] |= {"/": b"", "/posts/": b""}
    workers.held["guards"]["generation"] = b""
    monkeypatch.setattr(uwsgi, "uwsgi", workers)
    with site_with(CACHING_PAGE_CACHE="1", CACHING_UWSGI_CACHE="1"):
        assert registry.entries() == 3
        monkeypatch.setattr(uwsgi, "uwsgi", None)
        assert registry.entries() == 0, "a command is no worker"
    assert registry.entries() == 0, "no layer is active"


def test_joined_layers_share_middleware_and_the_outer_is_outside():
    paths = registry.outer_middleware(["varnish", "nginx-microcache", "staticgenerator"])
    names = [path.removeprefix("benchapp.caching.") for path in paths]
    assert names == ["external.cacheable_header.MarkCacheable", "stores.files.middleware", "request_reads.MarkPrivate"]


def test_active_layers_drop_stale_pages_the_inner_first_and_one_that_fails_stops_no_other(
    site_with: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog
):
    received: list[str] = []

    def purge(name: str) -> None:
        received.append(name)
        raise OSError(f"{name} is full")

    for module, name in (
        ("django_cache", "page-cache"),
        ("stores.files", "staticgenerator"),
        ("external.http", "inactive"),
    ):
        monkeypatch.setattr(f"benchapp.caching.{module}.purge", lambda stale, name=name: purge(name))
    with site_with(CACHING_PAGE_CACHE="1", CACHING_STATICGENERATOR_ROOT=str(tmp_path)):
        pages_invalidated.send(sender=StalePages, stale=StalePages(frozenset({"/"})))
    assert received == ["page-cache", "staticgenerator"]
    assert "page-cache is full" in caplog.text and "staticgenerator is full" in caplog.text
    pages_invalidated.send(sender=StalePages, stale=StalePages(frozenset({"/"})))
    assert len(received) == 2, "no layer is active any more"
