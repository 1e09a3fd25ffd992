"""Types of the proofs' arguments: a wrong value is refused in one line that names its argument."""

from __future__ import annotations

from collections.abc import Callable

from bench.cli import argument_types
from bench.cli.options import refusing


def count() -> Callable[[str], int]:
    """A whole number, 1 or more."""
    return refusing(argument_types.count())
