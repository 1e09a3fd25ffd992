"""List stacks and layers: what fits what, what can run here and why not, with the versions that would be used."""

from __future__ import annotations

import argparse
import json
from typing import Any

from bench.catalog.survey import survey
from bench.figures.columns import columns


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
    sections = {
        "STACKS (innermost server first)": [
            (name, " <- ".join(f"{item['name']} {_version(item)}" for item in stack["servers"]))
            for name, stack in listing["stacks"].items()
        ],
        "KNOWN LIMITS (checks of `verify` that a stack does not pass, and why)": _limits(listing["stacks"]),
        "FOUND": sorted(_found(listing).items()),
        "LAYERS": [(name, layer["about"]) for name, layer in listing["layers"].items()],
        "SERVICES": [(name, _state(service)) for name, service in listing["services"].items()],
        "SIZES (of stack, layer and services together)": [
            (name, size["title"] + (f"; not here: {size['problem']}" if size["problem"] else ""))
            for name, size in listing["sizes"].items()
        ],
    }
    for title, rows in sections.items():
        lines += ["", title, *columns(rows, "  ")]
    return "\n".join([*lines, "", *_matrix(listing)])


def _limits(stacks: dict[str, Any]) -> list[tuple[str, str]]:
    """Each reason that a stack declares, after the checks for which it holds."""
    rows = []
    for name, stack in stacks.items():
        for reason in dict.fromkeys(stack["declares"].values()):
            checks = ", ".join(check for check, other in stack["declares"].items() if other == reason)
            rows.append((name, f"{checks}: {reason}"))
    return rows


def _version(server: dict[str, Any]) -> str:
    if not server["program"] or None in server["modules"].values():
        return "(not installed)"
    return server["version"] or "(version unknown)"


def _state(service: dict[str, Any]) -> str:
    missing = ", ".join(service["missing"])
    return f"not installed: {missing}" if missing else service["version"] or "installed"


def _found(listing: dict[str, Any]) -> dict[str, str]:
    """The programs and modules that would be used, with their paths."""
    found: dict[str, str] = {}
    for chain in [*listing["stacks"].values(), *listing["layers"].values()]:
        for server in chain["servers"]:
            found[server["name"]] = server["program"] or "not installed"
            found |= {f"{server['name']} {name}": path or "not installed" for name, path in server["modules"].items()}
    return found


def _matrix(listing: dict[str, Any]) -> list[str]:
    reasons = list(dict.fromkeys(reason for fits in listing["fits"].values() for reason in fits.values() if reason))
    rows = [["", *listing["layers"]]]
    for stack, fits in listing["fits"].items():
        answers = (fits[layer] for layer in listing["layers"])
        rows.append([stack, *("yes" if reason is None else str(reasons.index(reason) + 1) for reason in answers)])
    numbered = [f"  {number}: {reason}" for number, reason in enumerate(reasons, 1)]
    return ["CAN RUN HERE (yes, or the number of the reason)", *columns(rows, "  "), *numbered]
