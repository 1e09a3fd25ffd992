"""The meaning of a field, declared beside its type: JSON Schemas and documentation take it from there."""

from __future__ import annotations

from msgspec import Meta


def means(sentence: str) -> Meta:
    """The annotation that says what a field means."""
    return Meta(description=sentence)
