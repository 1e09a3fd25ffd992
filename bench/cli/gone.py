"""Options that earlier versions had: each is refused in one line that names what to use now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# Of each command: the option, and what to do instead.
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "run": {
        "--mode": "--rate N is an open loop, --level N a closed one",
        "--think": "a visitor of --capacity stays 10 s on a page",
        "--warmup": "it is a fifth of --duration, at most 2 s",
        "--pin": "from four cores on, load tool, stack and services get cores of their own",
        "--no-pin": "from four cores on, load tool, stack and services always get cores of their own",
        "--locustfile": "this project's own load tool makes the load; choose a workload with --workload",
    },
    "up": {"--keep-going": "it is called --restart now"},
}


def problem(command: str, args: Sequence[str]) -> str:
    """Why an option among `args` is refused, or an empty string."""
    gone = OPTIONS.get(command, {})
    for word in args:
        if word == "--":
            break
        if (name := word.partition("=")[0]) in gone:
            return f"{name} is gone: {gone[name]}"
    return ""
