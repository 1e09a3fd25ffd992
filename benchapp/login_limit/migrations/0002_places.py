"""Places of attempts; a failure from before has none, and counts until its time is over."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("login_limit", "0001_initial")]

    operations = [
        # The unique constraint has an index on the same limits.
        migrations.RemoveIndex("failedlogin", "login_limit_recent"),
        migrations.AddField("failedlogin", "attempt", models.UUIDField(null=True)),
        migrations.AddField("failedlogin", "place", models.PositiveSmallIntegerField(null=True)),
        migrations.AddConstraint(
            "failedlogin", models.UniqueConstraint(fields=["limit", "place"], name="login_limit_place")
        ),
    ]
