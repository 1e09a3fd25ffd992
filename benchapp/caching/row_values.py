"""Names of values in rows of a model: `author.slug`. It imports nothing of the app: `doctor` loads it by its path."""

from __future__ import annotations

import re
from typing import Any

from django.core.exceptions import FieldDoesNotExist

# A name in braces, in a page of CACHING_STALE.
FIELD = re.compile(r"\{([\w.]+)\}")


def has_value(model: Any, name: str) -> bool:
    """True if rows of a model may have a value of that name; of what a method or a manager gives nothing is known."""
    for part in name.split("."):
        if not hasattr(model, part):
            return False
        try:
            field = model._meta.get_field(part)
        except FieldDoesNotExist:
            return True
        if not (field.many_to_one or field.one_to_one) or field.related_model is None:
            return True
        model = field.related_model
    return True
