"""The JSON Schema of a run's folder, made by msgspec from the records of bench.results: other programs can rely on it.

`python -m bench report --schema` prints it. Each file of a folder has its definition: run.json is `run`,
environment.json `environment`, a line of trials.jsonl `trial`, one of verify.jsonl `check`,
reproduction.json of a reproduction `reproduction`; of `bench faults`, faults.json is `faults` and a line of
faults.jsonl `fault`. A newer program may add properties; no listed property goes away within one version.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from bench.results import records
from bench.results.faults import FaultOutcome, FaultsInfo
from bench.results.reproduction import Reproduction
from bench.results.trials import Trial

DRAFT = "https://json-schema.org/draft/2020-12/schema"

# Files of a folder, or lines of files.
RECORDS = (
    *(records.RunInfo, records.Environment, Trial, records.Outcome),
    *(Reproduction, FaultsInfo, FaultOutcome),
)
# Definitions that are not called like their record in small letters.
NAMES = {
    "RunInfo": "run",
    "Outcome": "check",
    "FaultsInfo": "faults",
    "FaultOutcome": "fault",
}


def schema() -> dict[str, Any]:
    """The whole document."""
    _, components = msgspec.json.schema_components(RECORDS, ref_template="{name}")
    return {
        "$schema": DRAFT,
        "title": "Results of benchapp",
        "version": records.FORMAT,
        "description": f"Files of a run's folder, format {records.FORMAT}. null means not measured, never zero.",
        "$defs": {_name(record): _published(definition) for record, definition in components.items()},
    }


def _name(record: str) -> str:
    return NAMES.get(record, record.lower())


def _published(part: Any) -> Any:
    """A part of the schema with its references as we name them, descriptions on one line and without class names."""
    if isinstance(part, list):
        return [_published(item) for item in part]
    if not isinstance(part, dict):
        return part
    found = {key: _published(value) for key, value in part.items()}
    if isinstance(reference := part.get("$ref"), str):
        found["$ref"] = f"#/$defs/{_name(reference)}"
    if isinstance(description := part.get("description"), str):
        found["description"] = " ".join(description.split())
    if isinstance(part.get("title"), str):
        del found["title"]
    return found


def text() -> str:
    """The document as it is printed."""
    return json.dumps(schema(), indent=2) + "\n"
