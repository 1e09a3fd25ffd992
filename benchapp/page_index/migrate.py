"""The page index in a migration: what RunPython calls."""

from __future__ import annotations

from typing import Any

from benchapp.page_index.rebuild import rebuild
from benchapp.page_index.sql import FUNCTION, drop_triggers, script


def install(apps: Any, schema_editor: Any) -> None:
    """Create the page index and count the rows that are there."""
    rebuild(schema_editor.connection)


def remove(apps: Any, schema_editor: Any) -> None:
    """Leave nothing of the page index."""
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        drop_triggers(cursor, connection.vendor)
        for name in FUNCTION.findall(script(connection.vendor)):
            cursor.execute(f"DROP FUNCTION IF EXISTS {name}")
        cursor.execute("DROP TABLE IF EXISTS benchapp_pageblock")
