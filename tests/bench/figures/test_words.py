"""Counts, lists and durations as words."""

from __future__ import annotations

import pytest

from bench.figures import words


@pytest.mark.parametrize(("seconds", "said"), [(40, "40 s"), (170, "3 min"), (4800, "1 h 20 min")])
def test_an_estimate_is_rounded(seconds, said):
    assert words.about(seconds) == said


@pytest.mark.parametrize(("seconds", "said"), [(40, "40 s"), (170, "2 min 50 s"), (180, "3 min"), (4800, "1 h 20 min")])
def test_a_duration_is_exact(seconds, said):
    assert words.duration(seconds) == said


def test_counts_and_lists():
    assert [words.plural(count, "trial") for count in (0, 1, 1200)] == ["0 trials", "1 trial", "1,200 trials"]
    assert words.plural(2, "entry", "entries") == "2 entries"
    assert [words.joined(["a", "b", "c"][:count]) for count in range(4)] == ["", "a", "a and b", "a, b and c"]
