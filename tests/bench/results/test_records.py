"""The records: every field says what it means."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import pytest

from bench.results import records, reproduction, trials

RECORDS = {item for module in (records, trials, reproduction) for item in vars(module).values() if is_dataclass(item)}


@pytest.mark.parametrize("record", sorted(RECORDS, key=lambda record: record.__name__))
def test_every_field_is_explained_in_a_sentence(record):
    sentences = records.describe(record)
    assert list(sentences) == [field.name for field in fields(record)]
    assert all(sentence.endswith(".") and sentence[:1] for sentence in sentences.values())
