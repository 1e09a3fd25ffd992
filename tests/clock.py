"""A clock of one module: other threads of the process keep theirs."""

from __future__ import annotations

import time
from types import ModuleType, SimpleNamespace

import pytest


def change(monkeypatch: pytest.MonkeyPatch, module: ModuleType, **functions: object) -> None:
    """Give the module a separate `time`, with these functions for those of the standard library.

    A change of the library's own `time.sleep` would reach every thread, such as one that watches stored pages.
    """
    monkeypatch.setattr(module, "time", SimpleNamespace(**(vars(time) | functions)))
