"""The site's system checks of the page index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import connections

from benchapp import page_index


@register(Tags.database)
def check_triggers(databases: Sequence[str] | None = None, **options: Any) -> list[CheckMessage]:
    """A warning for each database without all triggers of the page index: lists would have wrong counts."""
    warnings = []
    for alias in databases or ():
        missing = page_index.missing_triggers(connections[alias])
        if missing:
            message = f"Database '{alias}' has no trigger {missing[0]}: new rows are not counted."
            hint = "Run ./manage.py migrate, which creates all triggers and counts the rows."
            warnings.append(Warning(message, hint=hint, id="benchapp.W001"))
    return warnings


@register(Tags.models)
def check_counts(**options: Any) -> list[CheckMessage]:
    """A warning for each count of children that no trigger maintains."""
    hint = (
        "Remove the field, or let `children` name the reverse side of a foreign key between two models of this"
        " application whose keys are whole numbers."
    )
    warnings = []
    for field in page_index.uncounted():
        message = f"Nothing counts the rows behind '{field.children}'."
        warnings.append(Warning(message, hint=hint, obj=field, id="benchapp.W002"))
    return warnings
