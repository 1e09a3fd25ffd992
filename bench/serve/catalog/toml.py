"""Reading TOML files into structs; a mistake is reported in one line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Struct

from bench.errors import BenchError

Kind = TypeVar("Kind", bound=Struct)
# The words of msgspec for the kinds of values.
NAMES = {
    "array": "a list",
    "object": "a table",
    "str": "a string",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
}


def read_toml(path: Path) -> dict[str, Any]:
    """The table in `path`; raises BenchError naming file and line for invalid TOML."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise BenchError(f"{path}: not valid TOML: {error}") from None
    except OSError as error:
        raise BenchError(f"{path}: cannot be read: {error.strerror}") from None


NO_PARTS: Mapping[str, type[Struct]] = {}


def decode(
    table: dict[str, Any], kind: type[Kind], path: Path, parts: Mapping[str, type[Struct]] = NO_PARTS, **more: Any
) -> Kind:
    """The `kind` declared by a table of the file `path`, with `more` keys; raises BenchError naming file and key.

    parts  the kinds of nested tables, by their keys
    """
    try:
        return msgspec.convert({**table, **more}, kind)
    except msgspec.ValidationError as error:
        raise BenchError(f"{path}: {_explained(str(error), kind, parts)}") from None


def _explained(message: str, kind: type[Struct], parts: Mapping[str, type[Struct]]) -> str:
    """A message of msgspec for the person who edits the file."""
    message, _, place = message.partition(" - at `")
    keys = re.findall(r"\.(\w+)", place)
    while keys and keys[0] in parts:
        kind, keys = parts[keys[0]], keys[1:]
    if missing := re.fullmatch(r"Object missing required field `(\w+)`", message):
        return f"{kind.__name__.lower()} needs {missing[1]!r}"
    if unknown := re.fullmatch(r"Object contains unknown field `(.+)`", message):
        known = ", ".join(kind.__struct_encode_fields__)
        return f"unknown key {unknown[1]!r}; known keys: {known}"
    if odd := re.fullmatch(r"Invalid enum value '(.*)'", message):
        choices = get_args(get_type_hints(kind)[keys[-1]])
        known = ", ".join(filter(None, choices))
        use = f"use one of {known}"
        if "" in choices:
            use = f"use {known}, or leave it out"
        return f"{keys[-1]} is {odd[1]!r}; {use}"
    if other := re.fullmatch(r"Expected `(.+)`, got `(.+)`", message):
        return f"{'.'.join(keys)} must be {_types(other[1])}, not {_types(other[2])}"
    return message


def _types(text: str) -> str:
    """Types as msgspec joins them, in words."""
    return " or ".join(NAMES.get(word, word) for word in text.split(" | "))
