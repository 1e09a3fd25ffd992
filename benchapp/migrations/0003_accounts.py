"""Comments know the account that wrote them; failed logins are rows; the page index counts by simpler triggers."""

from __future__ import annotations

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from benchapp import page_index


class Migration(migrations.Migration):
    dependencies = [("benchapp", "0002_page_index"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.RunPython(page_index.remove, page_index.install),
        migrations.CreateModel(
            name="FailedLogin",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("limit", models.CharField(max_length=64)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["limit", "at"], name="failed_login_limit"),
                    models.Index(fields=["at"], name="failed_login_at"),
                ],
            },
        ),
        migrations.AddField(
            model_name="comment",
            name="author",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="comments",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddIndex(
            model_name="comment",
            index=models.Index(condition=models.Q(("author__isnull", False)), fields=["author"], name="comment_author"),
        ),
        migrations.RunPython(page_index.install, page_index.remove),
    ]
