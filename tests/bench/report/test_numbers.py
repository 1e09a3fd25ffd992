"""Figures as text."""

from __future__ import annotations

import pytest

from bench.report import (
    numbers,
)


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
    assert numbers.number(value) == text
