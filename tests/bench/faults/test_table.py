"""Outcomes for people: a line each, and a table that fits 80 columns."""

from __future__ import annotations

from dataclasses import replace

from bench.catalog import catalog
from bench.faults import table
from bench.records.faults import FaultOutcome

MADE = FaultOutcome(
    *("id", "one", "none", "unlimited", "sqlite", "application", "replaced", 1, "now", "ok"),
    operator="restart, 12345 requests refused",
    requests_new=50_000,
    requests_kept=50_000,
    failed_new=12_000,
    failed_kept=345,
    longest_gap_s=30.94,
    recovery_s=None,
    wrong=100,
    stale=23,
    mixed_s=12.5,
)
SKIPPED = replace(MADE, fault="database", status="skipped", reason="SQLite is a file", failed_new=None)


def test_a_line_says_what_visitors_noticed():
    assert table.line(MADE) == (
        "one with layer none, application: pass; 12345 of 100000 requests failed; gap 30.9 s, recovery never; "
        "operator: restart, 12345 requests refused"
    )
    assert table.line(SKIPPED) == "one with layer none, database: skipped; SQLite is a file"


def test_the_table_fits_80_columns_for_every_stack():
    outcomes = [
        replace(MADE, stack=name, status="voided", reason="interference: " * 9) for name in catalog.read().stacks
    ]
    outcomes += [replace(item, layer="varnish", declared="it has no master", status="ok") for item in outcomes]
    text = table.as_text([*outcomes, SKIPPED])
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert text.splitlines()[0] == "APPLICATION"
    assert "APPLICATION, layer varnish" in text
    assert "\nDATABASE" not in text
    assert "  database: one: SQLite is a file" in text


def test_one_case_has_one_table_with_a_row_for_each_fault():
    title, *lines = table.as_text([MADE, replace(MADE, fault="worker", mixed_s=None)]).splitlines()[:4]
    assert (title, [line.split() for line in lines]) == (
        "one",
        [
            ["FAULT", "FAILED", "GAP", "BACK", "BAD", "MIXED", "OPERATOR"],
            ["application", "pass", "12345", "30.9", "never", "123", "12.5", "restart"],
            ["worker", "pass", "12345", "30.9", "never", "123", "-", "restart"],
        ],
    )


def test_outcomes_are_counted_and_reasons_said_once():
    failed = replace(MADE, status="failed", reason="too many")
    text = table.as_text([failed, replace(failed, stack="two"), MADE])
    assert text.count("too many") == 1
    assert "  application: one, two: too many" in text
    assert text.endswith("2 FAIL, 1 pass")
    assert table.as_text([]) == "nothing was made"
