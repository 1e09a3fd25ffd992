"""The settings that templates read, from `deploy/values/<name>.toml`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from bench import paths
from bench.errors import BenchError
from bench.manifest import read_toml


@dataclass(frozen=True)
class Values:
    """One file of values.

    names    the settings that templates use by name
    env      environment of the site
    changes  the names that the user changed, with their values
    places   where things are on the host; empty for `bench`, whose places are its run directory's
    """

    name: str
    names: dict[str, Any]
    env: dict[str, str] = field(default_factory=dict)
    places: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)

    def changed(self, changes: dict[str, Any], where: str = "--set") -> Values:
        """These values with some names changed; raises BenchError, naming `where`, for a name that does not exist."""
        for name, value in changes.items():
            if name not in self.names:
                raise BenchError(
                    f"{where} {name}: no such value; deploy/values/{self.name}.toml has {', '.join(self.names)}"
                )
            if problem := _problem(name, value, self.names[name]):
                raise BenchError(f"{where} {name}={value}: {problem}")
        return replace(self, names={**self.names, **changes}, changes={**self.changes, **changes})


# Names whose value is one of a few words, and numbers that may be zero.
CHOICES = {"listener": ("plain", "tls"), "redirect": ("off", "on")}
MAY_BE_ZERO = ("io_cache", "upstream_keepalive")


def _problem(name: str, value: Any, usual: Any) -> str:
    """What is wrong with a new value of a name that is usually `usual`, or an empty string."""
    if isinstance(usual, dict) and not isinstance(value, dict):
        return "it is a table; change it in the file"
    if name in CHOICES and value not in CHOICES[name]:
        return f"use {' or '.join(CHOICES[name])}"
    if isinstance(usual, int) and (not isinstance(value, int) or value < (0 if name in MAY_BE_ZERO else 1)):
        return f"use a whole number, {'0' if name in MAY_BE_ZERO else '1'} or more"
    return ""


def read(name: str = "bench") -> Values:
    """The values called `name`; raises BenchError that lists the names there are."""
    path = paths.DEPLOY / "values" / f"{name}.toml"
    names = sorted(item.stem for item in path.parent.glob("*.toml"))
    # A name, not a path: `../values/bench` would lead to a file, too.
    if name not in names:
        known = ", ".join(names)
        raise BenchError(f"no values called {name!r} in deploy/values; there are: {known}")
    table = read_toml(path)
    env = {key: str(value) for key, value in table.pop("env", {}).items()}
    places = table.pop("places", {})
    return Values(name, table, env, places)


def parse_changes(texts: list[str], where: str = "--set") -> dict[str, Any]:
    """`["processes=5"]` as `{"processes": 5}`: whole numbers become numbers, all else stays text.

    Raises BenchError, naming `where`, for a text of another form.
    """
    changes: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise BenchError(f"{where} {text}: write it as NAME=VALUE, for example processes=5")
        changes[name] = int(value) if value.isdecimal() else value
    return changes
