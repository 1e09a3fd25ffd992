"""The page index: its table of blocks, the triggers that keep it, and the first count of the rows."""

from __future__ import annotations

from django.db import migrations

from benchapp import page_index


class Migration(migrations.Migration):
    dependencies = [("benchapp", "0001_initial")]

    operations = [migrations.RunPython(page_index.install, page_index.remove, elidable=False)]
