"""The field of a maintained count, as migrations, checks and forms see it."""

from __future__ import annotations

from django.db import models
from django.forms import modelform_factory
from django.test.utils import isolate_apps

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


@isolate_apps("benchapp")
def test_a_count_without_a_relation_is_named():
    class Lonely(models.Model):
        children_count = ChildCount(children="children")
        title_count = ChildCount(children="title")
        title = models.CharField(max_length=9)

        class Meta:
            app_label = "benchapp"

    for name in ("children_count", "title_count"):
        assert [message.id for message in Lonely._meta.get_field(name).check()] == ["benchapp.W002"]
    assert Post._meta.get_field("comment_count").check() == []
