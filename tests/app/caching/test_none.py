"""Without a layer the app costs nothing: no middleware of it runs, and writes are those of Django."""

from __future__ import annotations

import pytest
from django.core.exceptions import MiddlewareNotUsed
from django.db.models.deletion import Collector
from django.db.models.signals import m2m_changed, post_delete, pre_save
from django.test import Client

from benchapp.caching.middleware import CachingMiddleware, WatchMiddleware
from benchapp.models import Author, Comment, Post
from tests.app.conftest import Rows


def test_a_save_is_one_query(rows: Rows, django_assert_num_queries):
    for row in (rows.author, rows.post, rows.post.comments.first()):
        with django_assert_num_queries(1):
            row.save(force_update=True)


def test_comments_are_deleted_with_their_post_at_once(rows: Rows, django_assert_num_queries):
    collector = Collector(using="default")
    assert collector.can_fast_delete(Comment.objects.all())
    with django_assert_num_queries(2):
        rows.post.delete()


def test_no_model_has_receivers_without_layers_and_all_have_them_with_one(settings):
    # `post_save` has a receiver of the site: that of counts in fixtures.
    signals = (pre_save, post_delete)
    connected = [signal.has_listeners(model) for signal in signals for model in (Author, Post, Comment)]
    assert not any(connected)
    settings.CACHING_LAYERS = {"page-cache": {}}
    connected = [signal.has_listeners(model) for signal in signals for model in (Author, Post, Comment)]
    assert all(connected)
    settings.CACHING_LAYERS = {}
    assert not any(signal.has_listeners(Post) for signal in (*signals, m2m_changed))


@pytest.mark.parametrize("middleware", [CachingMiddleware, WatchMiddleware])
def test_the_middleware_steps_aside(middleware: type):
    with pytest.raises(MiddlewareNotUsed):
        middleware(lambda request: None)


def test_the_site_s_pages_pass_no_middleware_of_the_app(db, monkeypatch):
    def fail(*_: object) -> None:
        raise AssertionError("middleware of the app ran")

    for middleware in (CachingMiddleware, WatchMiddleware):
        monkeypatch.setattr(middleware, "__call__", fail)
    assert Client().get("/posts/").status_code == 200
