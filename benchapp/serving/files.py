"""What a project writes to files beside its code, sent to another folder: logs and file caches.

It is also loaded by its path, by the interpreter of any project, so it imports nothing and runs on Python 3.8.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def logs_in(folder: Path, logging: dict[str, Any]) -> dict[str, Any]:
    """LOGGING with a file in that folder for each handler that has one."""
    handlers = {
        name: {**handler, "filename": str(folder / f"{name}.log")} if "filename" in handler else handler
        for name, handler in logging.get("handlers", {}).items()
    }
    return {**logging, "handlers": handlers} if handlers else logging


def caches_in(folder: Path, caches: dict[str, Any]) -> dict[str, Any]:
    """CACHES with a place in that folder for each that is made of files."""
    return {
        alias: {**cache, "LOCATION": str(folder / f"cache-{alias}")}
        if cache.get("BACKEND", "").endswith("FileBasedCache")
        else cache
        for alias, cache in caches.items()
    }
