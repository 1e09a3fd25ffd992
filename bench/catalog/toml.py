"""Reading a TOML file, with one line for what is wrong with it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from bench.errors import BenchError


def read_toml(path: Path) -> dict[str, Any]:
    """The table in `path`; raises BenchError naming the file and line when it is not TOML."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise BenchError(f"{path}: not valid TOML: {error}") from None
    except OSError as error:
        raise BenchError(f"{path}: cannot be read: {error.strerror}") from None
