"""The catalog: every manifest below deploy/, read once in a process."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from msgspec import structs

from bench import PROGRAM, paths
from bench.errors import BenchError, hint
from bench.serve.catalog import manifest, sizes, values
from bench.serve.catalog.manifest import HISTORIC, Layer, Release, Service, Stack
from bench.serve.catalog.names import NO_LAYER
from bench.serve.catalog.sizes import Size
from bench.serve.catalog.values import Values

LIST_HINT = f"`{PROGRAM} list` prints all"
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Catalog:
    """Everything by name, in alphabetical order; the layer `none` comes first.

    values    the files of deploy/values: `bench` and `production`
    releases  of Debian, by their numbers
    """

    stacks: Mapping[str, Stack]
    layers: Mapping[str, Layer]
    services: Mapping[str, Service]
    values: Mapping[str, Values]
    sizes: Mapping[str, Size]
    releases: Mapping[int, Release]

    @property
    def usual_stacks(self) -> tuple[str, ...]:
        """The stacks meant if none is named: all except the historic ones."""
        return tuple(name for name, stack in self.stacks.items() if stack.era != HISTORIC)

    def stack(self, name: str) -> Stack:
        """The stack called `name`, or a variant: `name@processes=25` or `name@processes=5,threads=2`.

        A variant is a separate stack in plans and results, so that one command compares several. Raises BenchError with
        the nearest name for an unknown stack, and for an unknown value.
        """
        plain, at, changes = name.partition("@")
        if not plain:
            raise BenchError(f"stack {name!r}: no stack is named; {LIST_HINT}")
        base = named(self.stacks, plain, "stack")
        if not at:
            return base
        if not changes:
            variant = f"{plain}@processes=5"
            raise BenchError(f"stack {name}: nothing follows the @; write {plain}, or {variant} for a variant")
        try:
            changed = dict(map(values.parse_change, changes.split(",")))
        except BenchError as error:
            raise BenchError(f"stack {name}: {error}") from None
        python = str(changed.pop("python", ""))
        if python and not re.fullmatch(r"[0-9]+\.[0-9]+", python):
            raise BenchError(f"stack {name}: python={python}: write a version such as python=3.13")
        ref = str(changed.pop("ref", ""))
        self.values[values.BENCH].changed(changed, f"stack {name}:")
        return structs.replace(base, name=name, values={**base.values, **changed}, python=python, ref=ref)

    def joined_layers(self, names: str) -> tuple[Layer, ...]:
        """The layers of a `+` joined name, in the order written; raises BenchError for an unknown or a repeated one."""
        parts = names.split("+")
        if "" in parts:
            raise BenchError(f"layer {names!r}: a name is missing; write one layer, or several with + between them")
        if len(set(parts)) != len(parts):
            raise BenchError(f"layer {names}: a layer is named twice; name each once")
        if len(parts) > 1 and NO_LAYER in parts:
            raise BenchError(f"layer {names}: {NO_LAYER} cannot be joined with another layer")
        return tuple(named(self.layers, part, "layer") for part in parts)

    def service(self, name: str) -> Service:
        """The service called `name`; raises BenchError with the nearest name for an unknown one."""
        return named(self.services, name, "service")

    def value_set(self, name: str) -> Values:
        """The file of values called `name`, or the user's own at that path, `x.toml`.

        Raises BenchError with the known names, and for a wrong file.
        """
        if name.endswith(".toml"):
            return values.read_own(Path(name), self.values)
        if name not in self.values:
            raise BenchError(f"no values called {name!r} in deploy/values; {hint(name, self.values)}")
        return self.values[name]

    def of_user(self, changes: Mapping[str, Any], env: Mapping[str, str]) -> Values:
        """The values of a measurement with the user's changes and environment; raises BenchError for an unknown one."""
        return replace(self.values[values.BENCH].changed(changes), user_env=env)

    def size(self, name: str) -> Size:
        """The size called `name`; raises BenchError with the nearest name for an unknown one."""
        if name not in self.sizes:
            raise BenchError(f"--size {name}: no such size; {hint(name, self.sizes)}")
        return self.sizes[name]


def named(known: Mapping[str, Entry], name: str, kind: str) -> Entry:
    """`known[name]`; raises BenchError with the nearest name for an unknown one."""
    if name in known:
        return known[name]
    raise BenchError(f"no {kind} called {name!r}; {hint(name, known, lister=f'{PROGRAM} list')}")


def read() -> Catalog:
    """The catalog of this checkout; raises BenchError naming the first wrong file."""
    return read_folder(paths.DEPLOY)


@functools.cache
def read_folder(deploy: Path) -> Catalog:
    """The catalog of a folder like deploy/, read once; `read_folder.cache_clear()` forgets the result."""
    layers = _each(deploy, "layer", manifest.read_layer)
    none = {}
    if NO_LAYER in layers:
        none = {NO_LAYER: layers[NO_LAYER]}
    names = (values.BENCH, values.PRODUCTION)
    return Catalog(
        _each(deploy, "stack", manifest.read_stack),
        MappingProxyType({**none, **layers}),
        _each(deploy, "service", manifest.read_service),
        MappingProxyType({name: values.read(deploy / "values" / f"{name}.toml") for name in names}),
        MappingProxyType(sizes.read(deploy / "values" / "sizes.toml")),
        MappingProxyType(manifest.read_releases(deploy / "values" / "debian.toml")),
    )


def _each(deploy: Path, kind: str, read: Callable[[Path], Entry]) -> Mapping[str, Entry]:
    """Read all manifests of a kind, by the name of their folder."""
    files = sorted(deploy.glob(f"{kind}s/*/{kind}.toml"))
    return MappingProxyType({path.parent.name: read(path) for path in files})
