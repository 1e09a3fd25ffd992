"""The kit's lock file, package by package: the packages of a stack, pinned by hash."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Mapping
from itertools import chain

from packaging.utils import canonicalize_name

from bench import paths
from bench.serve.catalog import catalog
from bench.serve.catalog.server import Server

LOCK = "requirements.lock"
# A package with its hashes, and which others need it.
_ENTRY = re.compile(r"(?m)^([\w.-]+)==.*(?:\n    --hash=.*)+")
_NEEDED_BY = re.compile(r"(?m)^    # +(?:via )?([\w.-]+)$")


@functools.cache
def _entries() -> Mapping[str, str]:
    """The text of each package, by name; all texts of a package that differs by Python."""
    text_by_name: dict[str, str] = {}
    for entry in _ENTRY.finditer((paths.KIT / LOCK).read_text("utf-8")):
        name = canonicalize_name(entry[1])
        text_by_name[name] = text_by_name.get(name, "") + entry[0] + "\n"
    return text_by_name


@functools.cache
def _needs() -> Mapping[str, list[str]]:
    """The dependencies of each package, by name."""
    dependencies: dict[str, list[str]] = {}
    for entry in re.split(r"(?m)^(?=\w)", (paths.KIT / LOCK).read_text("utf-8")):
        name = canonicalize_name(entry.partition("==")[0])
        for other in _NEEDED_BY.findall(entry):
            if other != "via":
                dependencies.setdefault(canonicalize_name(other), []).append(name)
    return dependencies


def pinned(wanted: Iterable[str], there: Collection[str] = ()) -> str:
    """The lines of a lock file for these packages and all dependencies, except packages `there`.

    Empty if the kit's lock file lacks one.
    """
    left: list[str] = [canonicalize_name(name) for name in wanted]
    chosen: set[str] = set()
    while left:
        name = left.pop()
        if name in chosen or name in there:
            continue
        if name not in _entries():
            return ""
        chosen.add(name)
        left += _needs().get(name, [])
    return "".join(text for name, text in _entries().items() if name in chosen)


def of_server(server: Server) -> list[str]:
    """The packages of a server."""
    return [*server.requirements] or [name for name in [server.distribution] if name]


def of_servers(servers: Iterable[Server]) -> list[str]:
    """The packages of several servers."""
    return list(chain.from_iterable(map(of_server, servers)))


def of_site() -> list[str]:
    """The packages of the kit's site: in the lock file, no dependency of others, and of no server."""
    servers = chain.from_iterable(stack.servers for stack in catalog.read().stacks.values())
    others = set(of_servers(servers)).union(*_needs().values())
    return [name for name in _entries() if name not in others]
