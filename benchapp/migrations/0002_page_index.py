"""The triggers that keep the page index, and its first count of the rows that are there."""

from __future__ import annotations

from django.db import migrations

from benchapp import counted


class Migration(migrations.Migration):
    dependencies = [("benchapp", "0001_initial")]

    operations = [migrations.RunPython(counted.resume, counted.pause, elidable=False)]
