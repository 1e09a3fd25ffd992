"""The releases of Debian that production's files are written for, from deploy/values/debian.toml."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from bench.catalog.toml import decode, read_toml

FILE = "debian.toml"


class Release(Struct, frozen=True, forbid_unknown_fields=True):
    """A release of Debian.

    number    as the value `debian` names it
    codename  such as bookworm
    systemd   its version, as python is
    packages  the versions of the packages that servers and services come in
    """

    number: int
    codename: str
    systemd: str
    python: str
    packages: dict[str, str]

    @property
    def title(self) -> str:
        return f"Debian {self.number} ({self.codename})"


def read(path: Path) -> dict[int, Release]:
    """Every release by its number; raises BenchError naming the file when it is wrong."""
    found = [decode(entry, Release, path, {}, number=int(number)) for number, entry in read_toml(path).items()]
    return {release.number: release for release in found}
