"""The JSON Schema of a run's folder, made from the records of bench.results: what other programs can rely on.

`python -m bench.results.schema` prints it, as it stands in docs/results.schema.json. Each file of a folder has its definition:
run.json is `run`, environment.json `environment`, a line of trials.jsonl `trial`, a line of verify.jsonl `check`, and
reproduction.json of a reproduction `reproduction`. A newer program may add properties; none that is listed goes away
within one version.
"""

from __future__ import annotations

import json
import types
import typing
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from bench.results import records
from bench.results.reproduction import Reproduction
from bench.results.records import describe

DRAFT = "https://json-schema.org/draft/2020-12/schema"
NAME = "results.schema.json"

# Name of a definition -> its record; the first ones are files or lines of files.
RECORDS = {
    "run": records.RunInfo,
    "environment": records.Environment,
    "trial": records.Trial,
    "check": records.Outcome,
    "reproduction": Reproduction,
}

# What the records check of words beyond their types.
WORDS = {
    ("trial", "status"): ["ok", "failed", "voided"],
    ("trial", "state"): ["cold", "warm"],
    ("plan", "mode"): list(records.MODES),
    ("run", "format"): [records.FORMAT],
}


def schema() -> dict[str, Any]:
    """The whole document."""
    definitions: dict[str, Any] = {}
    for name, record in RECORDS.items():
        _define(name, record, definitions)
    return {
        "$schema": DRAFT,
        "title": "Results of benchapp",
        "version": records.FORMAT,
        "description": f"Files of a run's folder, format {records.FORMAT}. null means not measured, never zero.",
        "$defs": definitions,
    }


def _define(name: str, record: type, definitions: dict[str, Any]) -> None:
    """Add the definition of a record, and of every record inside it."""
    definitions[name] = {}  # its place in the order, before those inside it
    hints, said = typing.get_type_hints(record), describe(record)
    properties = {}
    for item in fields(record):
        allowed = _type(hints[item.name], definitions)
        if words := WORDS.get((name, item.name)):
            allowed = {"enum": words}
        properties[item.name] = {"description": said[item.name], **allowed}
    definitions[name] = {
        "type": "object",
        "description": " ".join((record.__doc__ or "").split()),
        "properties": properties,
        "required": [item.name for item in fields(record) if item.default is MISSING],
    }


def _type(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """What JSON Schema says of a type that records use."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        (inner,) = (option for option in arguments if option is not type(None))
        return {"anyOf": [_type(inner, definitions), {"type": "null"}]}
    if origin is tuple and arguments[-1] is Ellipsis:
        return {"type": "array", "items": _type(arguments[0], definitions)}
    if origin is tuple:
        each = [_type(option, definitions) for option in arguments]
        return {"type": "array", "prefixItems": each, "minItems": len(each), "maxItems": len(each)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type(arguments[1], definitions)}
    if is_dataclass(hint):
        name = hint.__name__.lower()
        if name not in definitions:
            _define(name, hint, definitions)
        return {"$ref": f"#/$defs/{name}"}
    return {"type": {str: "string", bool: "boolean", int: "integer", float: "number"}[hint]}


def text() -> str:
    """The document as it is published."""
    return json.dumps(schema(), indent=2) + "\n"


if __name__ == "__main__":
    print(text(), end="")
