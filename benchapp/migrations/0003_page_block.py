"""The page index as a model, and the counts that triggers maintain as fields of that kind."""

from __future__ import annotations

from typing import Any

import django.db.models.manager
from django.db import migrations, models

import benchapp.fields


class AlterFieldOfSameColumn(migrations.AlterField):
    """A field of another class, whose column stays as it is: SQLite would copy the whole table."""

    def database_forwards(self, *args: Any, **kwargs: Any) -> None:
        """Change nothing."""

    def database_backwards(self, *args: Any, **kwargs: Any) -> None:
        """Change nothing."""


class Migration(migrations.Migration):
    dependencies = [("benchapp", "0002_page_index")]

    operations = [
        # The table that 0002 once made. The triggers are put up, and the rows counted, after the migrations.
        migrations.RunSQL("DROP TABLE IF EXISTS benchapp_pageblock", migrations.RunSQL.noop, elidable=True),
        migrations.CreateModel(
            name="PageBlock",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "list", "bits", "block", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("list", models.CharField(max_length=63)),
                ("bits", models.PositiveSmallIntegerField()),
                ("block", models.BigIntegerField()),
                ("rows", models.BigIntegerField()),
            ],
            options={"default_manager_name": "left_out"},
            managers=[("left_out", django.db.models.manager.Manager())],
        ),
        AlterFieldOfSameColumn(
            model_name="author",
            name="post_count",
            field=benchapp.fields.ChildCount(
                children="posts",
                db_default=0,
                default=0,
                editable=False,
                help_text="Posts of this author; maintained by triggers.",
                serialize=False,
            ),
        ),
        AlterFieldOfSameColumn(
            model_name="post",
            name="comment_count",
            field=benchapp.fields.ChildCount(
                children="comments",
                db_default=0,
                default=0,
                editable=False,
                help_text="Comments on this post; maintained by triggers.",
                serialize=False,
            ),
        ),
    ]
