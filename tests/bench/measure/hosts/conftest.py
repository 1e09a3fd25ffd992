"""Programs that replace the machine's."""

from __future__ import annotations

import pytest


@pytest.fixture
def standing_in(tmp_path, monkeypatch):
    """Put a program in front of the machine's."""

    def put(name: str, script: str) -> None:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", str(path.parent), prepend=":")

    return put
