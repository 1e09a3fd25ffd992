"""The JSON Schema of a run's folder, made by msgspec from these records: a stable interface for other programs.

`python -m bench report --schema` prints the schema. Each file of a folder has a definition: run.json is `run`,
environment.json `environment`, a line of trials.jsonl `trial`, of verify.jsonl `check`, of faults.jsonl `fault`. A
newer program may add properties; no listed property goes away within one version.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from bench.measure.records import records
from bench.measure.records.fault_outcomes import FaultOutcome
from bench.measure.records.trials import Trial
from bench.verify.outcome import Outcome

DRAFT = "https://json-schema.org/draft/2020-12/schema"

# Files of a folder, or lines of files.
RECORDS = (records.RunInfo, records.Environment, Trial, Outcome, FaultOutcome)
# Definitions that are not called like their record in small letters.
NAMES = {"RunInfo": "run", "Outcome": "check", "FaultOutcome": "fault"}


def schema(*more: type) -> dict[str, Any]:
    """The whole document, with the definitions of other records, too."""
    _, components = msgspec.json.schema_components((*RECORDS, *more), ref_template="#/$defs/{name}")
    definitions = json.dumps({_name(record): definition for record, definition in components.items()})
    for record in components:
        definitions = definitions.replace(f'"#/$defs/{record}"', f'"#/$defs/{_name(record)}"')
    return {
        "$schema": DRAFT,
        "title": "Results of benchapp",
        "version": records.FORMAT,
        "description": f"Files of a run's folder, format {records.FORMAT}. null means not measured, never zero.",
        "$defs": json.loads(definitions),
    }


def _name(record: str) -> str:
    return NAMES.get(record, record.lower())


def text(*more: type) -> str:
    """The printed document."""
    return json.dumps(schema(*more), indent=2) + "\n"
