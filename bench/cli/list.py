"""List stacks and layers: what fits what, what can run here and why not, with the versions that would be used."""

from __future__ import annotations

import argparse
import json
from typing import Any

from bench.catalog.survey import survey


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `list`."""
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")


def main(args: argparse.Namespace) -> int:
    """Print the listing."""
    listing = survey()
    print(json.dumps(listing, indent=2) if args.json else as_text(listing))
    return 0


def as_text(listing: dict[str, Any]) -> str:
    """The listing for people: stacks, layers, services, then the matrix."""
    python = listing["python"]
    who = f"servers run as user {listing['servers_run_as']}" if listing["servers_run_as"] else "servers cannot run"
    lines = [f"Python {python['version']} ({python['program']}); {who}"]
    if listing["notice"]:
        lines.append(f"note: {listing['notice']}")
    lines += ["", "STACKS (innermost server first)"]
    width = max(map(len, listing["stacks"]))
    for name, stack in listing["stacks"].items():
        chain = " <- ".join(f"{item['name']} {_version(item)}" for item in stack["servers"])
        lines.append(f"  {name:{width}}  {chain}")
    lines += ["", *_chosen(listing)]
    lines += ["", "LAYERS"]
    width = max(map(len, listing["layers"]))
    lines += [f"  {name:{width}}  {layer['about']}" for name, layer in listing["layers"].items()]
    lines += ["", "SERVICES"]
    for name, service in listing["services"].items():
        state = (
            f"not installed: {', '.join(service['missing'])}"
            if service["missing"]
            else service["version"] or "installed"
        )
        lines.append(f"  {name:{width}}  {state}")
    lines += ["", "SIZES (of stack, layer and services together)"]
    width = max(map(len, listing["sizes"]))
    for name, size in listing["sizes"].items():
        lines.append(
            f"  {name:{width}}  {size['title']}" + (f"; not here: {size['problem']}" if size["problem"] else "")
        )
    return "\n".join([*lines, "", *_matrix(listing)])


def _version(server: dict[str, Any]) -> str:
    if not server["program"] or None in server["modules"].values():
        return "(not installed)"
    return server["version"] or "(version unknown)"


def _chosen(listing: dict[str, Any]) -> list[str]:
    """The programs and modules that would be used, one line each."""
    found: dict[str, str] = {}
    for chain in [*listing["stacks"].values(), *listing["layers"].values()]:
        for server in chain["servers"]:
            found[server["name"]] = server["program"] or "not installed"
            found |= {f"{server['name']} {name}": path or "not installed" for name, path in server["modules"].items()}
    width = max(map(len, found))
    return ["FOUND", *(f"  {name:{width}}  {path}" for name, path in sorted(found.items()))]


def _matrix(listing: dict[str, Any]) -> list[str]:
    layers = list(listing["layers"])
    width = max(map(len, listing["fits"]))
    lines = ["CAN RUN HERE (yes, or the number of the reason)", "  " + " " * width + "  " + "  ".join(layers)]
    reasons: list[str] = []
    for stack, fits in listing["fits"].items():
        cells = []
        for layer in layers:
            reason = fits[layer]
            if reason is not None and reason not in reasons:
                reasons.append(reason)
            cells.append(f"{'yes' if reason is None else reasons.index(reason) + 1:<{len(layer)}}")
        lines.append(f"  {stack:{width}}  " + "  ".join(cells).rstrip())
    return lines + [f"  {number}: {reason}" for number, reason in enumerate(reasons, 1)]
