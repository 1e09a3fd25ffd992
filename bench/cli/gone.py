"""Options and words that earlier versions had: each is refused in one line that names what to use now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# Of each command: the option, or its first word, and what to do instead.
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "hosts": {
        "project": "measure with more web hosts, by `python -m bench run --inventory FILE`",
        "try": "name hosts of your own in an inventory, for `python -m bench hosts check --inventory FILE`",
    },
    "report": {
        "--format": "a report is a page; --json prints its data",
        "--site": "give several folders, and the page with --to FILE",
    },
    "run": {
        "--mode": "--rate N is an open loop, --level N a closed one",
        "--think": "a visitor of --capacity stays 10 s on a page",
        "--warmup": "it is a fifth of --duration, at most 2 s",
        "--pin": "from four cores on, load tool, stack and services get cores of their own",
        "--no-pin": "from four cores on, load tool, stack and services always get cores of their own",
        "--locustfile": "this project's own load tool makes the load; choose a workload with --workload",
        "--again": "--resume DIR makes voided trials again by itself",
        "--trust": "name the file as benchapp_trust in the inventory (docs/hosts.md)",
        "--verify": "a run makes the quick checks; for all of them: python -m bench verify STACK --layer L",
    },
    "up": {"--keep-going": "it is called --restart now"},
    "verify": {"--load": "the clients ask for as long as the checks need"},
    "tune": {"--keep-going": "stop the other programs, or accept what they take with --guard interference=off"},
    "faults": {"--no-guards": "use --guard interference=off"},
    "reproduce": {"--database": "each part has the database of its publication, or SQLite where that is not installed"},
}


def problem(command: str, args: Sequence[str]) -> str:
    """Why an option or the first word of `args` is refused, or an empty string."""
    gone = OPTIONS.get(command, {})
    for place, word in enumerate(args):
        if word == "--":
            break
        name = word.partition("=")[0]
        if name in gone and (place == 0 or name.startswith("-")):
            return f"{name} is gone: {gone[name]}"
    return ""
