"""The rendered configuration files of a run, without secrets. The rest of the report reads records only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.report.redact import redacted
from bench.results.folder import CONFIGS_DIRECTORY

MAX_BYTES = 200_000  # of one file; a longer one is cut, with a remark


@dataclass(frozen=True)
class ConfigFile:
    """One rendered file: its path inside its deployment's folder, and its text."""

    path: str
    text: str


def read_configs(directory: Path) -> dict[str, list[ConfigFile]]:
    """Deployment (folder under configs/) -> its files. Links are not followed; binary files are named only."""
    root = directory / CONFIGS_DIRECTORY
    if not root.is_dir():
        return {}
    folders = sorted(path for path in root.iterdir() if path.is_dir() and not path.is_symlink())
    found = {
        folder.name: [
            _read(path, folder) for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()
        ]
        for folder in folders
    }
    return {name: files for name, files in found.items() if files}


def _read(path: Path, folder: Path) -> ConfigFile:
    name = path.relative_to(folder).as_posix()
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        return ConfigFile(name, f"(cannot be read: {error.strerror})")
    if b"\0" in content:
        return ConfigFile(name, "(not a text file)")
    cut = f"\n(cut here: the file is longer than {MAX_BYTES:,} bytes)" if len(content) > MAX_BYTES else ""
    return ConfigFile(name, redacted(content[:MAX_BYTES].decode("utf-8", "replace")) + cut)
