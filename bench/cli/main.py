"""The command line: one parser, one subcommand a verb, every error one line."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NoReturn

import bench
from bench.errors import DISK_FULL, BenchError, is_disk_full

# Each command is a module of this package with add_arguments(parser) and main(args) -> int, in the order of a run. Only
# the module of the command that runs is imported, so that `--help` needs none of them.
COMMANDS = {
    "list": "stacks and layers, what fits what, what can run here and why not",
    "doctor": "what a Django project needs before it is served and measured",
    "check": "manifests, templates and each server's own configuration test",
    "render": "write a stack's files: for this machine, a host, containers or several hosts",
    "up": "serve the site by a stack until Ctrl-C",
    "reload": "reload what `up` serves: configuration files and code",
    "verify": "prove that stacks and layers give right answers",
    "faults": "break or replace something while visitors ask: what they notice",
    "run": "measure stacks under layers into a folder of results",
    "tune": "find processes, threads and worker class of a stack: most requests/s within a limit of latency",
    "hosts": "check what the hosts of an inventory lack",
    "report": "write one page from the files of one or several runs",
    "compare": "compare two runs case by case: ratios, intervals and verdicts",
}


class OneScreen(argparse.HelpFormatter):
    """Help that fits one screen: the options in one line each, and a usage line without all of them."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=21)

    def add_usage(
        self, usage: str | None, actions: Iterable[argparse.Action], groups: Any, prefix: str | None = None
    ) -> None:
        """As argparse's, with `[options]` for all that may be left out."""
        self._prog += " [options]"
        super().add_usage(usage, [item for item in actions if not item.option_strings or item.required], [], prefix)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line: what is wrong and where to read on."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


class CommandParser(Parser):
    """The parser of one command, completed by the command's module when it is asked to parse."""

    module: str | None = None

    def complete(self) -> CommandParser:
        """Add the command's own arguments, once."""
        if self.module:
            command, self.module = importlib.import_module(self.module), None
            self.description = (command.__doc__ or "").partition("\n\n")[0]
            command.add_arguments(self)
            self.set_defaults(main=command.main)
        return self

    def parse_known_args(  # type: ignore[override]  # argparse has overloads; their results are one
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As argparse's, of the completed parser. What it does not know is refused here, where its help is named."""
        found, unknown = super(CommandParser, self.complete()).parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, []


def parser(line: Collection[str] = ()) -> argparse.ArgumentParser:
    """The whole command line; the commands named in a `line` have their arguments before it is parsed."""
    top = Parser(
        prog="python -m bench", description="Serve the site by any stack, under any layer; verify, measure, report."
    )
    top.add_argument("--version", action="version", version=f"benchapp {bench.__version__}")
    verbs = top.add_subparsers(
        title="commands", required=True, metavar="COMMAND", dest="command", parser_class=CommandParser
    )
    for name, summary in COMMANDS.items():
        command = verbs.add_parser(name, help=summary, formatter_class=OneScreen)
        command.module = f"bench.cli.{name}"
        if name in line:
            command.complete()
    return top


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit status: 0 done, 1 something failed, 2 it could not be done, 130 interrupted."""
    if "_ARGCOMPLETE" in os.environ:
        # A shell asks how to complete its line; nobody else waits for this import.
        import argcomplete

        argcomplete.autocomplete(parser(os.environ.get("COMP_LINE", "").split()))
    args = parser().parse_args(argv)
    try:
        return int(args.main(args))
    except BenchError as error:
        print(f"bench {args.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"bench {args.command}: interrupted; everything it started is stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of the output is gone (`| head`): the interpreter's last flush must not fail either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        if not is_disk_full(error):
            raise
        where = f"{error.filename}: " if error.filename else ""
        print(f"bench {args.command}: {where}{DISK_FULL}; make room and try again", file=sys.stderr)
        return 2
