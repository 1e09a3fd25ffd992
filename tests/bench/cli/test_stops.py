"""Stops of a measuring command without a run: permission to write is given again, and faults are not hidden."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.cli import stops
from bench.errors import BenchError, GlobalFault


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (GlobalFault("it is gone"), BenchError, "; fix it and resume with: bench faults --resume x --allow-writes$"),
        (PermissionError("no"), PermissionError, "^no$"),
    ],
)
def test_a_stop_names_what_resumes_it(monkeypatch, error, kind, message):
    def go(interrupts):
        raise error

    monkeypatch.setattr(stops, "resume_command", lambda *_: "bench faults --resume x")
    folder = SimpleNamespace(directory=Path("x"), locked=nullcontext)
    with pytest.raises(kind, match=message):
        stops.run_until_stopped(SimpleNamespace(folder=folder, info=None), go, " --allow-writes")
