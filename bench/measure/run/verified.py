"""Verified deployments of a run, and their failures. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from bench.verify.outcome import Outcome
from bench.words import first_names, plural


class Verified:
    """Stacks with layers verified in a run, passed or not."""

    def __init__(self, outcomes: Iterable[Outcome] = ()):
        self._failed: dict[tuple[str, str], list[str]] = {}
        for outcome in outcomes:
            self.add(outcome.stack, outcome.layer, [outcome])

    def add(self, stack: str, layer: str, outcomes: Iterable[Outcome]) -> None:
        """Note the outcomes of a stack with a layer."""
        failed = self._failed.setdefault((stack, layer), [])
        failed += [outcome.check for outcome in outcomes if not outcome.ok]

    def knows(self, stack: str, layer: str) -> bool:
        """True if a stack with a layer was verified."""
        return (stack, layer) in self._failed

    def wrong(self, stack: str, layer: str) -> str:
        """The failed checks that forbid measuring; empty if none failed."""
        failed = self._failed.get((stack, layer), [])
        if not failed:
            return ""
        return f"not measured, it gives wrong responses: {plural(len(failed), 'check')} failed: {first_names(failed)}"
