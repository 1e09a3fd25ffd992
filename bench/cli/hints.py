"""Near misses on a command line by users of other tools."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from bench import PROGRAM
from bench.errors import hint

TOP_OPTIONS = ("-h", "--help", "--version")

# Name of a command elsewhere -> name here.
COMMANDS_ELSEWHERE = {
    **dict.fromkeys(("serve", "start", "runserver", "server"), "up"),
    **dict.fromkeys(("restart", "refresh"), "reload"),
    **dict.fromkeys(("test", "validate", "assert"), "verify"),
    **dict.fromkeys(("chaos", "inject", "break", "kill"), "faults"),
    **dict.fromkeys(("bench", "benchmark", "measure", "load", "attack", "perf", "timeit"), "run"),
    **dict.fromkeys(("optimize", "optimise", "autotune"), "tune"),
    **dict.fromkeys(("diff", "ratio"), "compare"),
    **dict.fromkeys(("deploy", "build", "generate", "export", "init", "template"), "render"),
    **dict.fromkeys(("lint", "configtest"), "check"),
    **dict.fromkeys(("ls", "show", "stacks", "layers"), "list"),
    **dict.fromkeys(("audit", "diagnose", "inspect", "scan"), "doctor"),
    **dict.fromkeys(("html", "publish", "summary"), "report"),
    **dict.fromkeys(("inventory", "host"), "hosts"),
}

# Name of an option elsewhere -> options here; a command may have only some of them.
OPTIONS_ELSEWHERE = {
    **dict.fromkeys(("-c", "--concurrency", "--clients", "--users", "--level", "--vus"), ("--connections",)),
    **dict.fromkeys(("-d", "-t", "--time", "--seconds", "--run-time"), ("--duration", "--max-time")),
    **dict.fromkeys(("--until", "--timeout", "--limit-time"), ("--until-decided", "--max-time")),
    **dict.fromkeys(("--budget",), ("--max-time",)),
    **dict.fromkeys(("-r", "--rps", "--qps"), ("--rate",)),
    **dict.fromkeys(("--runs", "--repeat", "--iterations", "--min-runs"), ("--rounds",)),
    **dict.fromkeys(("--to", "--out", "--dir", "--directory", "--file", "--outfile"), ("--output",)),
    **dict.fromkeys(("-n", "--plan", "--check-only", "--simulate"), ("--dry-run",)),
    **dict.fromkeys(("-p", "--bind", "--listen"), ("--port",)),
    **dict.fromkeys(("-w", "--workers", "--processes", "--threads"), ("--set",)),
    **dict.fromkeys(("-e", "--environment"), ("--env",)),
    **dict.fromkeys(("--db", "--database-url"), ("--database",)),
    **dict.fromkeys(("--keep-going", "--respawn"), ("--restart",)),
    **dict.fromkeys(("--cache",), ("--layer",)),
    **dict.fromkeys(("--server",), ("--stack",)),
    **dict.fromkeys(("--settings", "--pythonpath", "--app", "--describe"), ("--config", "--project")),
    **dict.fromkeys(("-i", "--hosts"), ("--inventory",)),
    **dict.fromkeys(("-k", "--only", "--select"), ("--check", "--fault")),
    **dict.fromkeys(("--as", "--type"), ("--format",)),
    **dict.fromkeys(("-y", "--yes"), ("--all",)),
    **dict.fromkeys(("-f", "--unlike"), ("--force",)),
    **dict.fromkeys(("--write",), ("--allow-writes",)),
    **dict.fromkeys(("--limit", "--slo", "--latency"), ("--capacity",)),
}


def no_command(words: Sequence[str], commands: Collection[str]) -> str:
    """The error for an unknown command; empty otherwise."""
    first = words[0]
    if first in commands or first in TOP_OPTIONS:
        return ""
    if first in ("-V", "-v"):
        return f"{first}: no such option; did you mean --version?"
    if first.startswith("-"):
        return f"{first}: name the command first: {', '.join(commands)}"
    meant = COMMANDS_ELSEWHERE.get(first.lower())
    next_step = hint(first, commands)
    if meant:
        next_step = f"did you mean {meant}?"
    return f"no command called {first!r}; {next_step}"


def unknown_argument(
    words: Sequence[str], parser: argparse.ArgumentParser, others: Callable[[], Mapping[str, Collection[str]]]
) -> str:
    """The error for the first word unknown to a command.

    others  gives the options of each command; called for an option only
    """
    word, own = words[0], parser._option_string_actions
    if not word.startswith("-"):
        if "--project" in own and ("--stack" not in own or Path(word).is_dir()):
            return f"{word}: name the folder of a project by --project {word}"
        return f"{word}: one argument too many"
    name = word.partition("=")[0]
    if name in ("-V", "--version"):
        return f"{name}: write it without a command: {PROGRAM} --version"
    if name in ("-v", "--verbose", "--debug"):
        return f"{name}: no such option; logs and configuration of each deployment are kept in files"
    if name in ("-q", "--quiet", "--silent"):
        return f"{name}: no such option; progress goes to standard error: add 2>/dev/null"
    if name in ("--host", "--ip", "--address"):
        return f"{name}: no such option; `up` serves on 127.0.0.1, and `render` writes files for a host"
    meant = [option for option in OPTIONS_ELSEWHERE.get(name, ()) if option in own]
    meant = meant or difflib.get_close_matches(name, own, 1, 0.75)
    if meant:
        return f"{name}: no such option; did you mean {' or '.join(meant)}?"
    having = [command for command, options in others().items() if name in options]
    if having:
        return f"{name} is an option of {', '.join(having)}"
    return f"{name}: no such option"
