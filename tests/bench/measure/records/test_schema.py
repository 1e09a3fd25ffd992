"""The JSON Schema of results: every field is described, and runs' files conform."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import jsonschema

from bench.cli import main
from bench.measure.records import records, schema
from tests.bench.measure.report import report_folder

# File of a run's folder -> definition of the file, or of each of its lines.
FILES = {"run.json": "run", "environment.json": "environment", "trials.jsonl": "trial", "verify.jsonl": "check"}


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    document = schema.schema()
    return jsonschema.Draft202012Validator({**document, "$ref": f"#/$defs/{name}"})


def lines_of(folder: Path, name: str) -> list[dict]:
    text = (folder / name).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()] if name.endswith("l") else [json.loads(text)]


def problems(folder: Path) -> list[str]:
    """Violations of the schema in a run's folder."""
    return [
        f"{name}: {error.json_path}: {error.message}"
        for name, definition in FILES.items()
        for record in lines_of(folder, name)
        for error in validator(definition).iter_errors(record)
    ]


def test_report_prints_a_schema_that_carries_the_version_of_the_format(capsys):
    assert main.main(["report", "--schema"]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(document)
    assert document["version"] == records.FORMAT
    assert set(FILES.values()) <= document["$defs"].keys()


def test_every_field_of_every_record_is_described(tmp_path):
    assert problems(report_folder.make(tmp_path / "run")) == []
    definitions = schema.schema()["$defs"]
    for name, record in definitions.items():
        for field, about in record["properties"].items():
            assert about["description"].endswith("."), f"{name}.{field}"
