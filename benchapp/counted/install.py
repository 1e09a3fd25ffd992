"""Putting the page index into a database and taking it out, by the database's vendor."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from django.db import NotSupportedError, transaction

from benchapp.counted import postgresql, sqlite
from benchapp.counted.rebuild import repair
from benchapp.counted.trees import TREES

VENDORS: dict[str, ModuleType] = {"sqlite": sqlite, "postgresql": postgresql}


def vendor_module(vendor: str) -> ModuleType:
    """The module of a vendor's SQL; NotSupportedError for a database without one."""
    try:
        return VENDORS[vendor]
    except KeyError:
        raise NotSupportedError(
            f"DATABASE_URL: the page index needs SQLite or PostgreSQL, not {vendor}; choose one of these"
        ) from None


def run(cursor: Any, statements: list[str]) -> None:
    for statement in statements:
        cursor.execute(statement)


def create_triggers(cursor: Any, vendor: str) -> None:
    """Create the triggers anew, whatever of them is there. `cursor` may be Django's or the driver's own."""
    run(cursor, vendor_module(vendor).create_statements())


def drop_triggers(cursor: Any, vendor: str) -> None:
    """Take the triggers out, for a bulk load or a change of tables; pages can still be read.

    Who does so fills the counts afterwards (`fill_counts`, or rows made elsewhere) and creates the
    triggers again, best within one transaction.
    """
    run(cursor, vendor_module(vendor).drop_statements())


def disable_triggers(cursor: Any, vendor: str) -> None:
    """Set the triggers aside until `create_triggers`, in the way that least disturbs a running site."""
    module = vendor_module(vendor)
    missing = missing_triggers(cursor, vendor)
    run(cursor, module.disable_statements([name for name in module.trigger_names() if name not in missing]))


def missing_triggers(cursor: Any, vendor: str) -> list[str]:
    """Names of the triggers that should be there and are not, or are disabled."""
    module = vendor_module(vendor)
    cursor.execute(module.INSTALLED_TRIGGERS)
    installed = {name for (name,) in cursor.fetchall()}
    return [name for name in module.trigger_names() if name not in installed]


def pause(apps: Any, schema_editor: Any) -> None:
    """For RunPython: set the triggers aside before a migration alters a table."""
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        run(cursor, vendor_module(connection.vendor).remove_statements())


def resume(apps: Any, schema_editor: Any) -> None:
    """For RunPython: count what is there, and keep it counted."""
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        repair(cursor, connection.vendor)
        create_triggers(cursor, connection.vendor)


def rebuild(connection: Any) -> None:
    """Make the whole page index anew while the site runs: writers wait, readers do not.

    Numbers already given stay. `connection` is Django's.
    """
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            tables = ", ".join(dict.fromkeys(tree.table for tree in TREES))
            cursor.execute(f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE")
        disable_triggers(cursor, connection.vendor)
        repair(cursor, connection.vendor)
        create_triggers(cursor, connection.vendor)
