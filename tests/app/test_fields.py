"""The field of a maintained count, as migrations, checks and forms see it."""

from __future__ import annotations

import pytest
from django.core.checks import Tags, run_checks
from django.db import models
from django.forms import modelform_factory
from django.test.utils import isolate_apps

from benchapp import page_index
from benchapp.fields import ChildCount
from benchapp.models import Author, Post


def test_migrations_make_the_field_that_the_model_has():
    field = Author._meta.get_field("post_count")
    name, path, arguments, options = field.deconstruct()
    copy = ChildCount(*arguments, **options)
    assert (name, path) == ("post_count", "benchapp.fields.ChildCount")
    assert copy.deconstruct()[1:] == (path, arguments, options)
    assert (copy.children, copy.default, copy.editable, copy.serialize) == ("posts", 0, False, False)


def test_a_new_row_has_no_children_yet_and_no_form_shows_the_count():
    assert Author().post_count == 0
    assert "post_count" not in modelform_factory(Author, fields="__all__").base_fields


class Ours:
    """Options of a model of the site."""

    app_label = "benchapp"


@isolate_apps("benchapp")
def test_a_count_that_nothing_maintains_is_named():
    class PageBlock(models.Model):
        Meta = Ours

    class Parent(models.Model):
        children_count = ChildCount(children="children")
        kept_count = ChildCount(children="kept")
        title_count = ChildCount(children="title")
        tag_count = ChildCount(children="tags")
        like_count = ChildCount(children="likes")
        other_count = ChildCount(children="others")
        title = models.CharField(max_length=9)
        Meta = Ours

    class Kept(models.Model):
        parent = models.ForeignKey(Parent, models.CASCADE, related_name="kept")
        Meta = Ours

    class Tag(models.Model):
        parents = models.ManyToManyField(Parent, related_name="tags")
        parent_count = ChildCount(children="parents")
        Meta = Ours

    class Like(models.Model):
        id = models.UUIDField(primary_key=True)
        parent = models.ForeignKey(Parent, models.CASCADE, related_name="likes")
        Meta = Ours

    class Other(models.Model):
        parent = models.ForeignKey(Parent, models.CASCADE, related_name="others")

        class Meta:
            app_label = "auth"

    names = {field.name for field in page_index.uncounted(Parent._meta.apps)}
    assert names == {"children_count", "title_count", "tag_count", "like_count", "other_count", "parent_count"}


def test_a_check_says_which_count_nothing_maintains(monkeypatch: pytest.MonkeyPatch):
    assert run_checks(tags=[Tags.models]) == []
    count = Post._meta.get_field("comment_count")
    monkeypatch.setattr(count, "children", "nobody")
    assert [(message.id, message.obj) for message in run_checks(tags=[Tags.models])] == [("benchapp.W002", count)]
