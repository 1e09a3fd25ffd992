"""Options that earlier versions had: each is refused in one line that names what to use now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# Of each command: the option, and what to do instead.
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "up": {"--keep-going": "it is called --restart now"},
    "run": {
        "--again": "--resume DIR makes voided trials again by itself",
        "--trust": "name the file as benchapp_trust in the inventory (docs/hosts-load.md)",
        "--verify": "a run makes the quick checks; for all of them: python -m bench verify STACK --layer L",
    },
    "verify": {"--load": "the clients ask for as long as the checks need"},
    "tune": {"--keep-going": "stop the other programs, or accept what they take with --guard interference=off"},
    "faults": {"--no-guards": "use --guard interference=off"},
    "reproduce": {"--database": "each part has the database of its publication, or SQLite where that is not installed"},
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
