"""The outcomes of the suite as text."""

from __future__ import annotations

from bench.records.records import Outcome
from bench.verify import table


def test_outcomes_are_counted_in_words():
    outcomes = [
        Outcome("one", "none", "status", True),
        Outcome("one", "none", "upload", True, declared="no bodies"),
        Outcome("one", "none", "browser", True, not_tried="no browser"),
    ]
    assert table.count(outcomes) == "1 checks passed, 1 declared, 1 not tried"
    outcomes.append(Outcome("one", "none", "content", False, "a page", "another"))
    assert table.count(outcomes) == "1 of 4 checks failed"
