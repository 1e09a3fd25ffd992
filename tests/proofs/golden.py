"""Compare what `verify` finds now with what it found before the instrument was made smaller (tests/golden/verify.json).

    python -m tests.proofs.golden [STACK ...] [--layer L]

Each stack with each layer is verified as it was then, and every subject that passed and does not now is printed. A pair
takes ten to forty seconds; without names all that were frozen are verified, which takes about an hour.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

from bench import paths

FOLDER = paths.KIT / "tests" / "golden"
# Subjects that have another name or place now -> the name and place.
MOVED: dict[str, str] = dict.fromkeys(("slow-bodies", "slow-headers", "database-hangs"), "the fault of that name")
MOVED |= {"database-stops": "the fault `database`", "service-stops": "the fault `caching-service`"}
MOVED |= {"service-hangs": "the fault `caching-service-hangs`"}
OF_SERVERS = ("restarts", "killed-mid-body", "killed-while-writing", "full-store", "full-disk")
MOVED |= dict.fromkeys((*OF_SERVERS, "render-lock-holder-killed"), "the fault of that name")
TIMEOUT_S = 400


@cache
def frozen() -> dict[str, Any]:
    """The frozen outcomes: `checks` by group, and of each stack and layer what was `declared` and `not_tried`."""
    outcomes: dict[str, Any] = json.loads((FOLDER / "verify.json").read_text("utf-8"))
    return outcomes


def passed(stack: str, layer: str) -> set[str]:
    """The checks that passed then on a pair."""
    outcomes, pair = frozen(), frozen()["pairs"][stack][layer]
    groups = ["behaviour"] if layer == "none" else list(outcomes["checks"])
    names = {name for group in groups for name in outcomes["checks"][group]}
    return names - set(pair["declared"]) - set(outcomes["not_tried"][pair["not_tried"]]) - MOVED.keys()


def differences(stack: str, layer: str) -> Iterator[str]:
    """A line for each check that passed then and does not pass now."""
    words = [sys.executable, "-m", "bench", "verify", stack, "--layer", layer, "--json"]
    quick = ["--quick"] if frozen()["pairs"][stack][layer]["quick"] else []
    done = subprocess.run([*words, *quick], cwd=paths.KIT, capture_output=True, text=True, timeout=TIMEOUT_S)
    try:
        outcomes = json.loads(done.stdout)["outcomes"]
    except ValueError:
        yield f"{stack} with layer {layer}: {(done.stderr.strip().splitlines() or ['no output'])[-1]}"
        return
    now = {item["check"]: item for item in outcomes}
    for name in sorted(passed(stack, layer)):
        item = now.get(name)
        if item is None:
            yield f"{stack} with layer {layer}: {name} is not made"
        elif not item["ok"] or item["skipped"] or item["known_limitation"]:
            yield f"{stack} with layer {layer}: {name}: {item['got'] or item['skipped'] or item['known_limitation']}"


def main() -> int:
    """Print the differences; returns 1 when there are some."""
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.golden", description=__doc__.splitlines()[0])
    parser.add_argument("stacks", nargs="*", choices=[[], *frozen()["pairs"]], metavar="STACK")
    parser.add_argument("--layer", metavar="L", help="this layer only")
    args = parser.parse_args()
    count = 0
    for stack in args.stacks or frozen()["pairs"]:
        for layer in frozen()["pairs"][stack]:
            if args.layer in (None, layer):
                lines = list(differences(stack, layer))
                count += len(lines)
                print("\n".join(lines) or f"{stack} with layer {layer}: as before", flush=True)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
