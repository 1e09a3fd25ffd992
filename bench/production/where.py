"""Where the values that an operator looks for first stand: in which file, after which words."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.production import units
from bench.serve import render
from bench.serve.case import Case
from bench.serve.layout import Places
from bench.serve.render import Wiring

# What they are called in the note, the value and its unit.
LOOKED_FOR = {
    "Largest body of a request": ("max_body_mb", " MB"),
    "Static files": ("static_root", ""),
    "Longest time for a request": ("request_timeout_s", " s"),
    "Longest wait for a client": ("client_timeout_s", " s"),
    "Processes of the application": ("processes", ""),
}
# Of a line, so many words say what it sets.
MAX_WORDS = 3
COMMENTS = ("#", ";", "//")


def rows(case: Case, places: Places, wiring: Wiring) -> list[tuple[str, str, str, str]]:
    """What each is, its value, and the file and the words of the first line that has it; empty where no file has.

    Found by rendering once more with another value: whatever the templates look like, that line differs.
    """
    usual = _texts(case, places, wiring)
    found = []
    for what, (name, unit) in LOOKED_FOR.items():
        if name == "static_root":
            value, other = places.static_root, _texts(case, replace(places, static_root="/elsewhere"), wiring)
        else:
            value = str(case.settings[name])
            changed = case.values.changed({name: int(value) * 2 + 1})
            other = _texts(replace(case, values=changed), places, wiring)
        file, words = next(_differing(usual, other), ("", ""))
        if not file and name in {server.instances for server in case.servers}:
            file, words = "systemd/", "a unit for each"
        found.append((what, f"{value}{unit}", file, words))
    return found


def _texts(case: Case, places: Places, wiring: Wiring) -> dict[str, str]:
    """The servers' files and the command of each unit, by the name of the file."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        written = render.write_files(case, places, wiring, folder)
        texts = {str(path.relative_to(folder)): path.read_text("utf-8") for path in written}
    commands = {unit.name: unit.start for unit in units.units(case, places, wiring)}
    return texts | {f"systemd/{name}.service": f"ExecStart={command}" for name, command in commands.items()}


def _differing(usual: dict[str, str], other: dict[str, str]) -> Iterator[tuple[str, str]]:
    everything = "\n".join(usual.values())
    for name in (name for name in usual if name in other):
        # One that no other file includes is read by nobody.
        if "/" in name and not name.startswith("systemd/") and name not in everything:
            continue
        for one, two in zip(usual[name].splitlines(), other[name].splitlines(), strict=False):
            if one != two and not one.lstrip().startswith(COMMENTS) and not (name.endswith(".py") and "=" not in one):
                yield name, _directive(one, two)


def _directive(one: str, two: str) -> str:
    """The last words that the lines have in common before they differ."""
    one, two = one.strip(), two.strip()
    common = one[: next(place for place, letter in enumerate(one) if letter != two[place : place + 1])]
    words = common.replace("=", " ").replace(":", " ").replace('"', " ").split()
    if one.startswith("ExecStart="):
        return words[-1]
    # A value that begins like the other one is not what it is called.
    whole = words if common[-1:] in " =:\"'" else words[:-1] or words
    return " ".join(whole[:MAX_WORDS])
