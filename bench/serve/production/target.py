"""The release of Debian for production's files: one with a Python for the project's packages."""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from bench.errors import BenchError
from bench.serve.catalog import catalog
from bench.serve.catalog.manifest import Release
from bench.serve.catalog.values import Values
from bench.serve.production.project_files import listing, repository
from bench.serve.project.description import FILE
from bench.serve.project.opened import UnderTest
from bench.words import joined

# A line of requirements.txt that includes another list.
INCLUDES = re.compile(r"\s*(?:-r|--requirement)[ =]*(\S+)")
# A line of it that has packages installed from their source.
NO_BINARY = re.compile(r"--no-binary[ =]+(\S+)")
# The tag of a wheel built on this machine. An index's tag names the C library, such as manylinux_2_17_x86_64.
COMPILED_HERE = re.compile(r"^Tag: \S+-linux_\w+$", re.M)
ELSEWHERE = "--format compose or kubernetes, whose image has the project's Python"


def for_project(project: UnderTest, chosen: Values) -> tuple[Values, str]:
    """The values with the release whose Python is nearest to the project's, and a note for an unusual release.

    Raises BenchError in one line if the packages cannot be installed on the named release, or on any.
    """
    releases = sorted(catalog.read().releases.values(), key=lambda release: release.number)
    usual = next(release for release in releases if release.number == chosen.names["debian"])
    if not project.recorded:
        return chosen, ""
    wanted = _wanted(project)
    refusals = {release.number: _refusal(wanted, release) for release in releases}
    if "debian" in chosen.changes:
        named = refusals[usual.number]
        fitting = [number for number, why in refusals.items() if not why]
        if named:
            others = ELSEWHERE
            if fitting:
                others = f"--set debian={fitting[0]}"
            raise BenchError(f"--set debian={usual.number}: {named}; use {others}")
        return chosen, ""

    own = Version(".".join(project.facts.python.split(".")[:2]))
    fitting_releases = [release for release in releases if not refusals[release.number]]
    if not fitting_releases:
        raise BenchError(f"{project.folder}: {refusals[releases[-1].number]}; use {ELSEWHERE}")
    # The first whose Python is not older than that of the measurement; else the newest.
    newer = [release for release in fitting_releases if Version(release.python) >= own]
    release = next(iter(newer), fitting_releases[-1])
    why = refusals[usual.number] or f"the project was run by Python {own}, and {usual.title} has {usual.python}"
    if release == usual:
        return chosen, ""
    note = f"for {release.title}, which has Python {release.python}: {why}"
    return chosen.changed({"debian": release.number}), note


def _refusal(wanted: dict[str, str], release: Release) -> str:
    """The reason why the packages cannot be installed on the release, or an empty string."""
    for name, python in wanted.items():
        if not SpecifierSet(python).contains(Version(release.python), prereleases=True):
            return f"{name} needs Python {python}, and {release.title} has {release.python}"
    return ""


def _wanted(project: UnderTest) -> dict[str, str]:
    """Required Python versions, by the project and its installed packages."""
    wanted: dict[str, str] = {f"{FILE} of the project": _table(project.folder).get("requires-python", "")}
    for distribution in _packages(project):
        name = canonicalize_name(distribution.metadata["Name"])
        wanted[f"{name} {distribution.version}"] = distribution.metadata["Requires-Python"]
    specifiers = {}
    for who, python in wanted.items():
        with contextlib.suppress(InvalidSpecifier):
            if python:
                SpecifierSet(python)
                specifiers[who] = python
    return specifiers


def _table(folder: Path) -> dict[str, Any]:
    """The table `project` of the project's pyproject.toml, or of its repository's; empty without one."""
    file = folder / FILE
    if not file.is_file():
        file = repository(folder) / FILE
    table: dict[str, Any] = {}
    if file.is_file():
        table = tomllib.loads(file.read_text("utf-8")).get("project", {})
    return table


def listed(project: UnderTest) -> frozenset[str]:
    """The canonical names of the installed packages of the project's list, and of their dependencies."""
    return frozenset(canonicalize_name(package.metadata["Name"]) for package in _packages(project))


def _packages(project: UnderTest) -> list[Distribution]:
    """The installed packages in the project's list, and their requirements."""
    distributed = distributions(path=list(project.sites))
    installed: dict[str, Distribution] = {canonicalize_name(it.metadata["Name"]): it for it in distributed}
    names = _listed(project.folder, _table(project.folder).get("dependencies", []), installed)
    return [installed[name] for name in names]


def compiled_here(project: UnderTest) -> str:
    """A note on listed packages that were compiled on this machine, because the index has no wheel; else empty.

    A deploy installs wheels only, except for packages after --no-binary in the list.
    """
    if not project.recorded:
        return ""
    allowed: list[str] = []
    for line in _lines(_place_of_list(project.folder) / "requirements.txt"):
        if option := NO_BINARY.search(line):
            allowed += map(canonicalize_name, option[1].split(","))

    names = []
    for distribution in _packages(project):
        name = canonicalize_name(distribution.metadata["Name"])
        if COMPILED_HERE.search(distribution.read_text("WHEEL") or "") and name not in allowed:
            names.append(name)
    if not names:
        return ""
    names.sort()
    lines = joined([f"--no-binary {name}" for name in names])
    return (
        f"compiled here from source: {joined(names)}; a deploy installs wheels only: write {lines} into "
        "requirements.txt, one option a line beside the packages, and install a compiler and the libraries on the host"
    )


def _listed(folder: Path, dependencies: list[str], installed: dict[str, Distribution]) -> list[str]:
    """The installed packages in the project's list, and their requirements."""
    lines, place = dependencies, _place_of_list(folder)
    if listing(place) == "requirements.txt":
        lines = list(_lines(place / "requirements.txt"))
    left = [*_names(lines), "django"]
    names: list[str] = []
    while left:
        name = left.pop()
        if name in installed and name not in names:
            names.append(name)
            left += _names(installed[name].requires or [])
    return names


def _place_of_list(folder: Path) -> Path:
    """The folder of the list of a project's packages: its own, or its repository's."""
    if listing(folder):
        return folder
    return repository(folder)


def _lines(file: Path) -> Iterator[str]:
    """The lines of a list of packages, and of included lists."""
    text = ""
    if file.is_file():
        text = file.read_text("utf-8", "replace")
    for line in text.splitlines():
        if included := INCLUDES.match(line):
            yield from _lines(file.parent / included[1])
        else:
            yield line


def _names(lines: Iterable[str]) -> list[str]:
    """The packages of these requirements, without those of extras and of other systems."""
    names: list[str] = []
    for line in lines:
        with contextlib.suppress(InvalidRequirement):
            requirement = Requirement(line.partition(" #")[0].partition(" --")[0].strip())
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                names.append(canonicalize_name(requirement.name))
    return names
