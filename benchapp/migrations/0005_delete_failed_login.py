"""Failed logins are a table of the app `login_limit`; rows live for minutes, so none is moved."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("benchapp", "0004_comment_user")]

    operations = [migrations.DeleteModel("FailedLogin")]
