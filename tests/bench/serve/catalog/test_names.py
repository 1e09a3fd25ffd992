"""Names of stacks' variants."""

from __future__ import annotations

from bench.serve.catalog.names import variants


def test_each_stack_has_a_variant_of_each_value():
    assert variants(["a", "b@processes=2"], "python", ["3.12", "3.13"]) == (
        *("a@python=3.12", "a@python=3.13"),
        *("b@processes=2,python=3.12", "b@processes=2,python=3.13"),
    )
    assert variants(["a"], "python", []) == ("a",)
