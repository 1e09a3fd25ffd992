"""A program: make and run the migrations of changed models, then write rows; prints what is in the database as JSON.

It is run with the changed site in front of this one on sys.path.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import django


def main() -> None:
    django.setup()
    from django.apps import apps
    from django.core.management import call_command
    from django.db import connection

    from benchapp import page_index

    call_command("makemigrations", "benchapp", verbosity=0)
    call_command("migrate", verbosity=0)
    call_command("makemigrations", "benchapp", "--check", verbosity=0)
    author, post, comment = (apps.get_model("benchapp", name) for name in ("author", "post", "comment"))
    result = {"migrated": rows_of(author, post, comment), "wrong": page_index.differences(connection)}
    created = [new(model, 300) for model in (author, post, comment)]
    result |= {"created": rows_of(author, post, comment), "wrong_created": page_index.differences(connection)}
    comment._base_manager.filter(pk__gt=created[2][100].pk)._raw_delete("default")
    for name in foreign_keys(post):
        post._base_manager.update(**{name: created[0][5]})
    result |= {"changed": rows_of(author, post, comment), "wrong_changed": page_index.differences(connection)}
    json.dump(result, sys.stdout)


def foreign_keys(model: Any) -> list[str]:
    """Names of the foreign keys of a model."""
    return [field.name for field in model._meta.local_fields if field.remote_field]


def rows_of(*models: Any) -> list[list[int]]:
    """For each model the rows that are there, those in the page index, and those that parents count."""
    from benchapp.fields import ChildCount
    from benchapp.pagination import total

    rows = []
    for model in models:
        counts = [field.name for field in model._meta.local_fields if isinstance(field, ChildCount)]
        children = [sum(model._base_manager.values_list(name, flat=True)) for name in counts]
        rows.append([model._base_manager.count(), total(model), *children])
    return rows


def new(model: Any, rows: int) -> list[Any]:
    """New rows with what their fields need; no signal tells of them."""
    values: dict[str, Any] = {}
    for field in model._meta.local_fields:
        if field.remote_field and field.related_model._meta.app_label == "benchapp":
            values[field.name] = field.related_model._base_manager.latest("pk")
        elif not (field.primary_key or field.has_default() or field.null):
            values[field.name] = "x" if field.empty_strings_allowed and not field.choices else 1
    return model._base_manager.bulk_create([model(**values) for _ in range(rows)])


if __name__ == "__main__":
    main()
