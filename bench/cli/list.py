"""List stacks and layers: what runs here, what is missing and how to install it."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from typing import Any

from bench.cli import options
from bench.columns import columns, paragraph
from bench.printer import Printer, working
from bench.serve.catalog import catalog
from bench.serve.catalog.compatibility import NOT_INSTALLED
from bench.serve.catalog.manifest import HISTORIC, PLACES
from bench.serve.catalog.names import NO_LAYER
from bench.serve.deployment.survey import survey
from bench.words import first_names, joined

FOR_HISTORIC = "only if named, and in reproductions"
TIME_TO_LIVE = "a write of this project shows after cache_seconds: no layer knows which pages it makes stale"
FOR_WRITES = "docs/hosts.md; the effect of a write holds for a site that names the stale pages"

OPTIONS = (
    *options.APPLIED,
    replace(options.ALL, help="also what fits what, versions, sizes and limits", group=options.RESULTS),
    options.JSON,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `list`."""
    options.add(parser, OPTIONS)


def main(args: argparse.Namespace) -> int:
    """Print the listing."""
    with working("looking at the project"):
        project = options.project_of(args)
        listing = survey(project.only_inspected, catalog.read().of_user(args.set, args.env))
    if args.json:
        print(json.dumps(listing, indent=2))
        return 0
    printer = Printer()
    if args.all:
        text = as_text(listing, printer.width, not project.description.invalidates)
    else:
        text = as_screen(listing, printer.width)
    printer.say(text)
    return 0


def as_screen(listing: dict[str, Any], width: int) -> str:
    """The listing on a screen: usable stacks by the server in front, their layers, and missing programs."""
    here = [name for name, fits in listing["fits"].items() if fits[NO_LAYER] is None]
    lines = [f"Python {listing['python']['version']}; {_user(listing)}"]
    if not listing["servers_run_as"]:
        lines += paragraph(listing["notice"], width)
    lines += ["", "STACKS THAT RUN HERE", *columns(_by_front(listing, here), "  ", width)]
    lines += ["", "THEIR LAYERS", *columns(_layers_here(listing, here), "  ", width)]
    services = ", ".join(_services_here(listing)) or "none"
    lines += ["", *paragraph(f"SERVICES: {services}", width, "", "  ")]
    missing = _missing(listing, here)
    if missing:
        lines += ["", "MISSING"]
    for names, reason in missing:
        lines += paragraph(f"{names}: {reason}", width, "  ", "  ")
    return "\n".join([*lines, "", "--all: what fits what, with reasons, versions, sizes and known limits"])


def _user(listing: dict[str, Any]) -> str:
    if not listing["servers_run_as"]:
        return "servers cannot run"
    return f"servers run as user {listing['servers_run_as']}"


def _by_front(listing: dict[str, Any], here: list[str]) -> list[tuple[str, str]]:
    """Usable stacks by the server in front; historic ones apart."""
    rows: dict[str, list[str]] = {}
    for name in here:
        stack = listing["stacks"][name]
        front = "on its own"
        if stack["era"] == HISTORIC:
            front = HISTORIC
        elif len(stack["servers"]) > 1:
            front = f"behind {stack['servers'][-1]['name']}"
        rows.setdefault(front, []).append(name)
    if HISTORIC in rows:
        rows[HISTORIC] = rows.pop(HISTORIC)
    return [(front, ", ".join(names)) for front, names in rows.items()]


def _layers_here(listing: dict[str, Any], here: list[str]) -> list[tuple[str, str]]:
    """Each layer with the servers of the usable stacks that it works on."""
    rows: list[tuple[str, str]] = []
    for layer, manifest in listing["layers"].items():
        fitting = [stack for stack in here if listing["fits"][stack][layer] is None]
        if fitting:
            where = "any stack"
            if len(fitting) < len(here):
                where = _servers_of(listing, fitting, here)
            if manifest["kind"] == "templates":
                where += "; written into your code"
            rows.append((layer, where))
    return rows


def _servers_of(listing: dict[str, Any], fitting: list[str], here: list[str]) -> str:
    """The fewest servers common to exactly these stacks, or the names of the stacks."""
    servers: dict[str, set[str]] = {}
    others: set[str] = set()
    for stack in here:
        servers[stack] = {server["name"] for server in listing["stacks"][stack]["servers"]}
        if stack not in fitting:
            others |= servers[stack]
    left, names = list(fitting), []
    while left:
        counts = Counter(chain.from_iterable(servers[stack] - others for stack in left))
        if not counts:
            return ", ".join(fitting)
        best = max(sorted(counts), key=counts.__getitem__)
        names.append(best)
        left = [stack for stack in left if best not in servers[stack]]
    return f"stacks with {joined(sorted(names), 'or')}"


def _services_here(listing: dict[str, Any]) -> list[str]:
    services = []
    for name, service in listing["services"].items():
        if not service["missing"]:
            services.append(f"{name} {service['version'] or ''}".strip())
    return services


def _missing(listing: dict[str, Any], here: list[str]) -> list[tuple[str, str]]:
    """Unusable stacks and layers by missing program, with its installation."""
    names: dict[str, list[str]] = {}
    for stack, fits in listing["fits"].items():
        if stack not in here:
            names.setdefault(fits[NO_LAYER], []).append(stack)
    for layer in listing["layers"]:
        reasons = [listing["fits"][stack][layer] for stack in here]
        missing = [reason for reason in reasons if reason and NOT_INSTALLED in reason]
        if missing and None not in reasons:
            names.setdefault(missing[0], []).append(f"the layer {layer}")
    for name, service in listing["services"].items():
        if service["missing"]:
            reason = f"{NOT_INSTALLED}: {', '.join(service['missing'])}; {service['install']}"
            names.setdefault(reason, []).append(f"the service {name}")
    return [(first_names(those), reason) for reason, those in names.items()]


def as_text(listing: dict[str, Any], width: int, other: bool = False) -> str:
    """The listing for people within a width: the matrix, then stacks, layers, services and sizes.

    `other` is for a project whose writes the kit cannot map to stale pages.
    """
    python = listing["python"]
    lines = [*_matrix(listing, width), ""]
    lines += paragraph(f"Python {python['version']} ({python['program']}); {_user(listing)}", width)
    if listing["notice"]:
        lines += paragraph(f"note: {listing['notice']}", width)
    layers = listing["layers"]
    title_of_layers, on_hosts = "LAYERS", "docs/hosts.md"
    if other:
        title_of_layers, on_hosts = f"LAYERS ({TIME_TO_LIVE})", FOR_WRITES
    sections = {
        "STACKS (innermost server first)": _chains(listing["stacks"], ""),
        f"HISTORIC STACKS ({FOR_HISTORIC})": _chains(listing["stacks"], HISTORIC),
        title_of_layers: _named(layers, itemgetter("about")),
        "PLACES OF THE LAYERS' CACHES": _places(layers),
        f"SEVERAL WEB HOSTS ({on_hosts})": _named(layers, _several_hosts),
        "SERVICES": _named(listing["services"], _state),
        "SIZES (of stack, layer and services together)": _named(listing["sizes"], _size),
        "DEBIAN (whose versions production is rendered for: render --set debian=NUMBER)": _named(
            listing["releases"], _release
        ),
    }
    for title, rows in sections.items():
        lines += ["", *paragraph(title, width), *columns(rows, "  ", width)]
    return "\n".join([*lines, "", *_limits(listing["stacks"], width)])


def _named(items: dict[str, Any], words: Callable[[dict[str, Any]], str]) -> list[tuple[str, str]]:
    """Each item's name with words about it."""
    return [(name, words(item)) for name, item in items.items()]


def _several_hosts(layer: dict[str, Any]) -> str:
    return layer["several_hosts"] or f"no: {layer['one_host']}"


def _places(layers: dict[str, Any]) -> list[tuple[str, str]]:
    """Each place of a cache with its layers."""
    rows = []
    for kind, where in PLACES.items():
        names = [name for name, layer in layers.items() if layer["kind"] == kind]
        rows.append((where, ", ".join(names)))
    return rows


def _chains(stacks: dict[str, Any], era: str) -> list[tuple[str, str]]:
    """Each stack of an era with its servers and their versions."""
    rows = []
    for name, stack in stacks.items():
        if (stack["era"] or "") == era:
            servers = [f"{server['name']} {_version(server)}" for server in stack["servers"]]
            rows.append((name, " <- ".join(servers)))
    return rows


def _limits(stacks: dict[str, Any], width: int) -> list[str]:
    """Each declared reason after its checks, with its stacks."""
    where: dict[str, dict[str, list[str]]] = {}
    for name, stack in stacks.items():
        for check, reason in stack["declares"].items():
            where.setdefault(reason, {}).setdefault(name, []).append(check)
    lines = ["KNOWN LIMITS (checks of `verify` that a stack does not pass, and why)"]
    for reason, checks in where.items():
        names = dict.fromkeys(chain.from_iterable(checks.values()))
        lines += paragraph(f"{', '.join(checks)}: {', '.join(names)}: {reason}", width, "  ", "  ")
    return lines


def _version(server: dict[str, Any]) -> str:
    if server["later"]:
        return "(installed when needed)"
    if not server["program"]:
        return "(not installed)"
    missing = [name for name, path in server["modules"].items() if path is None]
    version = server["version"] or "(version unknown)"
    if missing:
        return f"{version} (without its module {', '.join(missing)})"
    return version


def _size(size: dict[str, Any]) -> str:
    if not size["problem"]:
        return str(size["title"])
    return f"{size['title']}; not here: {size['problem']}"


def _release(release: dict[str, Any]) -> str:
    versions = {"systemd": release["systemd"], "Python": release["python"], **release["packages"]}
    return f"{release['codename']}: " + ", ".join(f"{name} {version}" for name, version in versions.items())


def _state(service: dict[str, Any]) -> str:
    missing = ", ".join(service["missing"])
    if missing:
        return f"not installed: {missing}"
    return service["version"] or "installed"


def _matrix(listing: dict[str, Any], width: int) -> list[str]:
    """A row for each stack and a narrow column for each layer, with its name above like a step of a staircase."""
    every = chain.from_iterable(fits.values() for fits in listing["fits"].values())
    reasons = list(dict.fromkeys(filter(None, every)))
    cells: dict[str | None, str] = {None: "yes"}
    for number, reason in enumerate(reasons, 1):
        cells[reason] = f"{number:<3}"
    layers = list(listing["layers"])
    start = " " * (3 + max(map(len, listing["fits"])))
    steps = [f"{start}{'|   ' * number}{layer}" for number, layer in enumerate(layers)]
    rows = []
    for stack, fits in listing["fits"].items():
        row = [cells[fits[layer]] for layer in layers]
        row.append(f"{listing['stacks'][stack]['era'] or '':3}")
        rows.append((stack, " ".join(row)))
    lines = ["CAN RUN HERE (yes, or the number of the reason)", *steps, *columns(rows, " ")]
    for number, reason in enumerate(reasons, 1):
        lines += paragraph(f"{number}: {reason}", width, "  ", "   ")
    return lines
