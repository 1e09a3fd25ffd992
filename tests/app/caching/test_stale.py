"""Settings about a project's pages: pages that may be cached, and pages that a write of a model makes stale."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.db.models.signals import post_delete, post_save
from django.test.utils import isolate_apps

from benchapp.caching import stale_rules
from benchapp.caching.invalidation import StalePages
from benchapp.models import Post

STALE = {
    "auth.User": ["/", "/people/*", "/by/{get_username}/", "/with/{email}/"],
    "auth.Group": ["/groups/{name}/", "{name}"],
    "auth.Permission": ["/of/{content_type.model}/"],
}


@pytest.fixture
def connected(settings, db) -> None:
    settings.CACHING_LAYERS, settings.CACHING_STALE = {"page-cache": {}}, STALE


def test_a_saved_row_invalidates_its_pages_and_those_it_was_on(connected, stale_after):
    # An empty value names no page.
    stale = stale_after(lambda: User.objects.create(username="ann"))
    assert stale == StalePages(frozenset({"/", "/by/ann/"}), frozenset({"/people/"}))
    user = User.objects.get()
    user.username = "bj\u00f6rk"
    assert stale_after(user.save).paths >= {"/by/ann/", "/by/bj%C3%B6rk/"}
    assert stale_after(User.objects.get().delete).paths >= {"/by/bj%C3%B6rk/"}


def test_a_changed_relation_invalidates_too(connected, stale_after):
    user, group = User.objects.create(username="ann"), Group.objects.create(name="staff")
    assert "/by/ann/" in stale_after(lambda: user.groups.add(group)).paths
    assert stale_after(lambda: group.user_set.remove(user)).paths >= {"/by/ann/", "/groups/staff/"}


def test_a_proxy_and_the_model_whose_rows_it_has_are_watched_both(settings, monkeypatch):
    with isolate_apps("django.contrib.auth"):

        class Member(User):
            class Meta:
                proxy = True
                app_label = "auth"

            def own(self) -> str:
                return f"of-{self.username}"

    watched: dict[type, Callable] = {}
    models = {"auth.User": User, "auth.Member": Member}
    monkeypatch.setattr(stale_rules.apps, "get_model", models.__getitem__)
    monkeypatch.setattr(stale_rules, "watch", lambda model, pages_of, remembers: watched.update({model: pages_of}))
    settings.CACHING_LAYERS = {"page-cache": {}}
    settings.CACHING_STALE = {"auth.User": ["/by/{username}/"], "auth.Member": ["/{own}/"]}
    # What only the proxy has is looked up in a row of the model, too.
    assert list(watched) == [User]
    assert watched[User](User(username="ann"), "changed").paths == {"/by/ann/", "/of-ann/"}


def test_the_page_of_each_language_is_stale(settings, monkeypatch):
    active = []

    @contextlib.contextmanager
    def override(code):
        active.append(code)
        yield

    settings.LANGUAGES, settings.USE_I18N = [("en", "English"), ("de", "German")], True
    monkeypatch.setattr(stale_rules, "has_language_in_urls", lambda urlconf: True)
    # Django has chosen its functions for a site without languages.
    monkeypatch.setattr(stale_rules.translation, "override", override)
    monkeypatch.setattr(User, "path", lambda user: f"/{active[-1]}/by/{user}/", raising=False)
    stale_rules._languages.cache_clear()
    try:
        assert stale_rules.stale_pages(User(username="ann"), ["{path}"]).paths == {"/en/by/ann/", "/de/by/ann/"}
    finally:
        stale_rules._languages.cache_clear()


def test_a_cleared_relation_invalidates_the_pages_of_both_sides(connected, stale_after):
    ann, group = User.objects.create(username="ann"), Group.objects.create(name="staff")
    ann.groups.add(group)
    stale = stale_after(ann.groups.clear)
    assert {"/groups/staff/", "/by/ann/"} <= stale.paths
    group.user_set.add(ann)
    stale = stale_after(group.user_set.clear)
    assert {"/groups/staff/", "/by/ann/"} <= stale.paths


def test_values_of_other_rows_are_looked_up(connected, stale_after):
    kind = ContentType.objects.get_for_model(Session)
    stale = stale_after(lambda: Permission.objects.create(content_type=kind, codename="x", name="y"))
    assert "/of/session/" in stale.paths


def test_an_error_in_a_value_is_logged_and_stops_no_write(connected, stale_after, caplog, monkeypatch):
    def broken(user: User) -> str:
        raise ValueError("no name")

    monkeypatch.setattr(User, "get_username", broken)
    assert stale_after(lambda: User.objects.create(username="ann")) == StalePages()
    assert User.objects.count() == 1
    assert "a row is not invalidated; it shows after the time to live" in caplog.messages[-1]


def test_a_method_that_writes_is_not_called(db):
    user = User.objects.create(username="ann")
    assert stale_rules.stale_pages(user, ["/{delete}/"]) == StalePages()
    assert User.objects.count() == 1


def test_other_models_keep_what_django_does_without_receivers(connected):
    assert not post_delete.has_listeners(Session)


def test_a_page_without_a_slash_at_its_end_is_invalidated_and_a_prefix_without_one_warned(
    connected, stale_after, caplog
):
    assert stale_after(lambda: Group.objects.create(name="/about")).paths == {"/groups//about/", "/about"}
    assert stale_after(lambda: Group.objects.create(name="/about*")).paths == {"/groups//about*/"}
    assert "/about* is not invalidated: pages begin with a slash, and those below one end with /*" in caplog.messages


def test_a_rule_as_a_person_writes_it_is_the_name_of_a_page(db):
    stale = stale_rules.stale_pages(User(username="ann"), ["/caf\u00e9/", "/a%20b/", "/\u00fcber/*"])
    assert stale == StalePages(frozenset({"/caf%C3%A9/", "/a%20b/"}), frozenset({"/%C3%BCber/"}))


def test_a_value_that_is_missing_names_no_page(db):
    assert stale_rules.stale_pages(Post(title="x"), ["/of/{author.name}/", "/"]) == StalePages(frozenset({"/"}))


@pytest.mark.parametrize(
    ("stale", "message"),
    [
        ({"auth.Users": ["/"]}, "there is no model 'auth.Users'"),
        ({"nonsense": ["/"]}, "there is no model 'nonsense'"),
        ({"auth.User": ["/{usernam}/"]}, "auth.User has no 'usernam'"),
        ({"auth.User": "/"}, "auth.User needs a list"),
    ],
)
def test_an_entry_with_a_problem_is_logged_and_the_others_are_watched(settings, caplog, stale, message):
    settings.CACHING_LAYERS = {"page-cache": {}}
    settings.CACHING_STALE = {**stale, "auth.Group": ["/"]}
    assert message in caplog.text
    assert post_save.has_listeners(Group) and not post_save.has_listeners(User)


def test_rules_follow_the_setting(settings, stale_after, db):
    settings.CACHING_LAYERS, settings.CACHING_STALE = {"page-cache": {}}, {"auth.Group": ["/a/"]}
    assert stale_after(lambda: Group.objects.create(name="a")).paths == {"/a/"}
    settings.CACHING_STALE = {"auth.Group": ["/b/"]}
    assert stale_after(lambda: Group.objects.create(name="b")).paths == {"/b/"}
    settings.CACHING_STALE = {}
    assert not post_save.has_listeners(Group)
