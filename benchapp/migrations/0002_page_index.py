"""A place in the history: here the page index had a table that no model knew, and 0003 replaces it."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("benchapp", "0001_initial")]

    operations = []
