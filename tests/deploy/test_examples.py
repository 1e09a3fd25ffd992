"""deploy/examples is what a render writes, on any machine."""

from __future__ import annotations

import pytest

from bench import programs
from tests.deploy import examples


def test_the_examples_are_the_stacks_of_the_readme():
    assert len(examples.stacks()) == 10
    assert sorted(path.name for path in examples.FOLDER.iterdir()) == sorted(examples.stacks())


@pytest.mark.parametrize("stack", examples.stacks())
def test_an_example_is_what_is_rendered_where_nothing_is_installed(stack, monkeypatch):
    monkeypatch.setattr(programs, "find", lambda *_: None)
    monkeypatch.setattr(programs, "module", lambda *_: None)
    folder = examples.FOLDER / stack
    there = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert examples.rendered(stack) == there, "write them anew: make examples"
