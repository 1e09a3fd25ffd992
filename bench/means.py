"""The meaning of a field, declared beside its type, for JSON Schemas and documentation."""

from __future__ import annotations

from msgspec import Meta


def means(sentence: str) -> Meta:
    """The annotation for a field's meaning."""
    return Meta(description=sentence)
