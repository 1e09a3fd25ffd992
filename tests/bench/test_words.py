"""Figures, counts, lists and durations as words."""

from __future__ import annotations

import pytest

from bench import words


@pytest.mark.parametrize(("seconds", "text"), [(40, "40 s"), (170, "3 min"), (4800, "1 h 20 min")])
def test_an_estimate_is_rounded(seconds, text):
    assert words.estimate(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(40, "40 s"), (170, "2 min 50 s"), (180, "3 min"), (4800, "1 h 20 min")])
def test_a_duration_is_exact(seconds, text):
    assert words.duration(seconds) == text


def test_counts_and_lists():
    assert [words.plural(count, "trial") for count in (0, 1, 1200)] == ["0 trials", "1 trial", "1,200 trials"]
    assert words.plural(2, "entry", "entries") == "2 entries"
    assert [words.joined(["a", "b", "c"][:count]) for count in range(4)] == ["", "a", "a and b", "a, b and c"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "not measured"),
        (float("nan"), "not measured"),
        (float("inf"), "not measured"),
        (0, "0"),
        (7.3e-7, "0.000001"),
        (2e-7, "under 0.000001"),
        (0.01234, "0.0123"),
        (1.234, "1.23"),
        (9.996, "10.0"),
        (12.34, "12.3"),
        (99.96, "100"),
        (123.4, "123"),
        (12345.6, "12,346"),
    ],
)
def test_numbers_have_three_significant_digits(value, text):
    assert words.number(value) == text


def test_an_interval_says_its_confidence_and_an_open_end_is_open():
    assert words.interval(1.9, 2.4) == "1.90 to 2.40 (95 % confidence)"
    assert words.interval_text(475, None) == words.interval_text(475, float("inf")) == "475 or more"
