"""The path of the rest of the kit, from here: in a clone, or in the wheel's own folder."""

from __future__ import annotations

from pathlib import Path

_INSTALLED = Path(__file__).parents[2] / "kit"
FOLDER = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[3]
