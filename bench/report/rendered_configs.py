"""The rendered configuration files of a run, without secrets. The rest of the report reads records only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.figures.words import joined
from bench.report.redact import placed, redacted
from bench.results.folder import CONFIGS_DIRECTORY

MAX_BYTES = 200_000  # of one file; a longer one is cut, with a remark
DEPLOYMENT = "$DEPLOYMENT"  # the folder of a deployment, in which its files lie while it serves

Files = Mapping[str, "list[ConfigFile]"]  # deployment (folder under configs/) -> its files


@dataclass(frozen=True)
class ConfigFile:
    """One rendered file: its path inside its deployment's folder, and its text."""

    path: str
    text: str


@dataclass(frozen=True)
class SharedFile:
    """A file with the deployments that have it in this wording, in the order of the folder."""

    path: str
    text: str
    layers: tuple[str, ...]  # those whose deployments have it; empty when every deployment of its stacks has it


@dataclass(frozen=True)
class ConfigGroup:
    """The files that the same stacks have, each once."""

    stacks: tuple[str, ...]
    files: tuple[SharedFile, ...]

    @property
    def title(self) -> str:
        """The name of one stack, or `one, another and a third`."""
        return joined(list(self.stacks))


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


def by_stack(files: Files, places: Mapping[str, str]) -> list[ConfigGroup]:
    """The files of all deployments, each once: those of one stack first, then those that several stacks share.

    Two files are the same when they differ only in the folder of their deployment. `places` as in `redact.places`.
    """
    deployments: dict[str, list[str]] = {}  # stack -> its layers
    owners: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for name, rendered in files.items():
        stack, _, layer = name.partition("~")
        deployments.setdefault(stack, []).append(layer)
        # The directory of a variant has another sign for its comma: not every server can work in one with it.
        written = re.escape(name.replace(",", "+"))
        folder = re.compile(rf"(?:/[\w.@+~-]+)+/raw/{written}~r\d+")
        for file in rendered:
            text = placed(folder.sub(DEPLOYMENT.replace("\\", r"\\"), file.text), places)
            owners.setdefault((file.path, text), []).append((stack, layer))
    groups: dict[tuple[str, ...], list[SharedFile]] = {}
    for (path, text), where in owners.items():
        stacks = tuple(dict.fromkeys(stack for stack, _ in where))
        everywhere = len(where) == sum(len(deployments[stack]) for stack in stacks)
        layers = () if everywhere else tuple(dict.fromkeys(layer for _, layer in where))
        groups.setdefault(stacks, []).append(SharedFile(path, text, layers))
    return [ConfigGroup(stacks, _in_order(found)) for stacks, found in sorted(groups.items(), key=_few_stacks_first)]


def _few_stacks_first(group: tuple[tuple[str, ...], list[SharedFile]]) -> tuple[int, tuple[str, ...]]:
    return len(group[0]), group[0]


def _in_order(files: Iterable[SharedFile]) -> tuple[SharedFile, ...]:
    return tuple(sorted(files, key=lambda file: (file.path, file.layers)))


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
