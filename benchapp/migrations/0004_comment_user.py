"""The account of a comment is called `user`: an author is somebody who writes posts."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("benchapp", "0003_page_block")]

    operations = [
        migrations.RemoveIndex("comment", "comment_author"),
        migrations.RenameField("comment", "author", "user"),
        migrations.AddIndex(
            "comment",
            models.Index(fields=["user"], name="comment_user", condition=models.Q(("user__isnull", False))),
        ),
    ]
