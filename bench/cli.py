"""The command line: one parser, one subcommand a verb, every error one line."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from types import ModuleType

from bench import checking, compare, listing, production, report, reproduce, run, up, verify
from bench.errors import BenchError

# In the order of a run. Each module has SUMMARY, add_arguments(parser) and main(args) -> int.
COMMANDS: dict[str, ModuleType] = {
    "list": listing,
    "check": checking,
    "render": production,
    "up": up,
    "verify": verify,
    "run": run,
    "report": report,
    "compare": compare,
    "reproduce": reproduce,
}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line: what is wrong and where to read on."""

    def error(self, message: str) -> None:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = Parser(
        prog="python -m bench", description="Serve the site by any stack, under any layer; verify, measure, report."
    )
    verbs = top.add_subparsers(title="commands", required=True, metavar="COMMAND", dest="command")
    for name, module in COMMANDS.items():
        verb = verbs.add_parser(name, help=module.SUMMARY, description=module.__doc__)
        module.add_arguments(verb)
        verb.set_defaults(main=module.main)
    return top


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit status: 0 done, 1 something failed, 2 it could not be done, 130 interrupted."""
    args = parser().parse_args(argv)
    try:
        return args.main(args)
    except BenchError as error:
        print(f"bench {args.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"bench {args.command}: interrupted; everything it started is stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output has gone (`| head`); nothing is left to say, not even when the interpreter flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
