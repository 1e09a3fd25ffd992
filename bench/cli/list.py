"""List stacks and layers: what fits what, what can run here and why not, with the versions that would be used."""

from __future__ import annotations

import argparse
import json
from typing import Any

from bench.cli import options
from bench.measure.stats.columns import columns, paragraph
from bench.printer import Printer
from bench.serve.catalog import values
from bench.serve.catalog.manifest import HISTORIC
from bench.serve.deployment.survey import survey

FOR_HISTORIC = "where they are named, and in reproductions"
TIME_TO_LIVE = "a write of this project shows after cache_seconds: no layer knows which pages it makes stale"
FOR_WRITES = "docs/hosts.md; what a write does holds for a site that says which pages it makes stale"
KINDS = {
    "outer": ("outer", "in a server, by what pages say; any project"),
    "django": ("inside Django", "in middleware that the kit's settings put in front; any project"),
    "templates": ("in templates", "written into the code of a site"),
}


OPTIONS = (*options.APPLIED, options.JSON)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `list`."""
    options.add(parser, OPTIONS)


def main(args: argparse.Namespace) -> int:
    """Print the listing."""
    project = options.project_of(args)
    listing = survey(project.only_looked_at, values.parse_changes(args.set), values.environment(args.env))
    if args.json:
        print(json.dumps(listing, indent=2))
    else:
        printer = Printer()
        printer.say(as_text(listing, printer.width, not project.description.invalidates))
    return 0


def as_text(listing: dict[str, Any], width: int, other: bool = False) -> str:
    """The listing for people within a width: the matrix, then stacks, layers, services and sizes.

    `other` words it for a project of which the kit does not know which pages a write makes stale.
    """
    python = listing["python"]
    who = f"servers run as user {listing['servers_run_as']}" if listing["servers_run_as"] else "servers cannot run"
    lines = [
        *_matrix(listing, width),
        "",
        *paragraph(f"Python {python['version']} ({python['program']}); {who}", width),
    ]
    if listing["notice"]:
        lines += paragraph(f"note: {listing['notice']}", width)
    sections = {
        "STACKS (innermost server first)": _chains(listing["stacks"], ""),
        f"HISTORIC STACKS ({FOR_HISTORIC})": _chains(listing["stacks"], HISTORIC),
        f"LAYERS{f' ({TIME_TO_LIVE})' if other else ''}": [
            (name, layer["about"]) for name, layer in listing["layers"].items()
        ],
        "WHERE THEY CACHE": [
            (where, f"{how}: {', '.join(name for name, it in listing['layers'].items() if it['kind'] == kind)}")
            for kind, (where, how) in KINDS.items()
        ],
        f"SEVERAL WEB HOSTS ({FOR_WRITES if other else 'docs/hosts.md'})": [
            (name, layer["several_hosts"] or f"no: {layer['one_host']}") for name, layer in listing["layers"].items()
        ],
        "SERVICES": [(name, _state(service)) for name, service in listing["services"].items()],
        "SIZES (of stack, layer and services together)": [
            (name, size["title"] + (f"; not here: {size['problem']}" if size["problem"] else ""))
            for name, size in listing["sizes"].items()
        ],
        "DEBIAN (whose versions production is rendered for: render --set debian=NUMBER)": [
            (number, _release(release)) for number, release in listing["releases"].items()
        ],
    }
    for title, rows in sections.items():
        lines += ["", *paragraph(title, width), *columns(rows, "  ", width)]
    return "\n".join([*lines, "", *_limits(listing["stacks"], width)])


def _chains(stacks: dict[str, Any], era: str) -> list[tuple[str, str]]:
    """Each stack of an era with its servers and their versions."""
    return [
        (name, " <- ".join(f"{item['name']} {_version(item)}" for item in stack["servers"]))
        for name, stack in stacks.items()
        if (stack["era"] or "") == era
    ]


def _limits(stacks: dict[str, Any], width: int) -> list[str]:
    """Each reason that stacks declare after its checks, and the stacks for which it holds."""
    where: dict[str, dict[str, list[str]]] = {}
    for name, stack in stacks.items():
        for check, reason in stack["declares"].items():
            where.setdefault(reason, {}).setdefault(name, []).append(check)
    lines = ["KNOWN LIMITS (checks of `verify` that a stack does not pass, and why)"]
    for reason, checks in where.items():
        names = dict.fromkeys(check for found in checks.values() for check in found)
        lines += paragraph(f"{', '.join(checks)}: {', '.join(names)}: {reason}", width, "  ", "  ")
    return lines


def _version(server: dict[str, Any]) -> str:
    if server["later"]:
        return "(installed when needed)"
    if not server["program"] or None in server["modules"].values():
        return "(not installed)"
    return server["version"] or "(version unknown)"


def _release(release: dict[str, Any]) -> str:
    versions = {"systemd": release["systemd"], "Python": release["python"], **release["packages"]}
    return f"{release['codename']}: " + ", ".join(f"{name} {version}" for name, version in versions.items())


def _state(service: dict[str, Any]) -> str:
    missing = ", ".join(service["missing"])
    return f"not installed: {missing}" if missing else service["version"] or "installed"


def _matrix(listing: dict[str, Any], width: int) -> list[str]:
    """A row a stack and a narrow column a layer, whose name stands above it like a step of a staircase."""
    reasons = list(dict.fromkeys(reason for fits in listing["fits"].values() for reason in fits.values() if reason))
    layers = list(listing["layers"])
    start = " " * (3 + max(map(len, listing["fits"])))
    steps = [f"{start}{'|   ' * number}{layer}" for number, layer in enumerate(layers)]
    rows = []
    for stack, fits in listing["fits"].items():
        answers = (fits[layer] for layer in layers)
        cells = ("yes" if reason is None else str(reasons.index(reason) + 1) for reason in answers)
        rows.append((stack, " ".join(f"{cell:3}" for cell in (*cells, listing["stacks"][stack]["era"] or ""))))
    numbered = [line for row in enumerate(reasons, 1) for line in paragraph("{}: {}".format(*row), width, "  ", "   ")]
    return ["CAN RUN HERE (yes, or the number of the reason)", *steps, *columns(rows, " "), *numbered]
