"""The command line: one parser, one subcommand a verb, every error one line."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import signal
import sys
import tomllib
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import bench
from bench.cli import hints
from bench.errors import DISK_FULL, BenchError, is_disk_full

NAME = "benchapp"
ABOUT = "Which server and cache should a Django site run on? Serve it by any stack under any caching layer, verify and "
ABOUT += "measure it, and render the files of the one that wins."

# Each command is a module of this package with add_arguments(parser) and main(args) -> int. Only the module of the
# running command is imported, so that `--help` needs none.
GROUPS = {
    "look": {
        "list": "list stacks and layers: what runs here, and what is missing",
        "doctor": "find problems in a Django project before you deploy it",
    },
    "serve": {
        "up": "serve the site by a stack until Ctrl-C",
        "reload": "reload what `up` serves: configuration files and code",
    },
    "verify": {
        "verify": "prove that stacks and layers give right responses",
        "faults": "inject faults under load and report the effects on visitors",
    },
    "measure": {
        "run": "benchmark stacks and caching layers into a folder of results",
        "tune": "find processes, threads and worker class of a stack within a latency limit",
        "report": "write one page from the files of one or several runs",
        "compare": "compare two runs case by case: ratios, intervals and verdicts",
    },
    "deploy": {
        "render": "write a stack's files: for a host, containers, several hosts or this machine",
        "check": "test manifests and templates, by each server's own configuration test",
        "hosts": "check the hosts of an inventory for missing requirements",
    },
}
COMMANDS = dict(chain.from_iterable(group.items() for group in GROUPS.values()))
EXAMPLES = Path(__file__).with_name("examples.toml")
EXIT_STATUS = "exit status: 0 done, 1 something failed, 2 could not be done, 130 or 143 interrupted"


class OneScreen(argparse.RawDescriptionHelpFormatter):
    """Help on one screen: one line for each option, and a usage line without options."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=24)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """As later Pythons' argparse: `-o, --output DIR`."""
        if len(action.option_strings) < 2 or action.nargs == 0:
            return super()._format_action_invocation(action)
        return f"{', '.join(action.option_strings)} {action.metavar}"

    def add_usage(
        self, usage: str | None, actions: Iterable[argparse.Action], groups: Any, prefix: str | None = None
    ) -> None:
        """As argparse's, with `[options]` for all optional arguments."""
        self._prog += " [options]"
        super().add_usage(usage, [item for item in actions if not item.option_strings or item.required], [], prefix)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line: the problem and where to read on."""

    def error(self, message: str) -> NoReturn:
        read_on = f"; see {bench.PROGRAM} help{self.prog.removeprefix(NAME)}"
        if message.endswith("?"):
            read_on = ""
        self.exit(2, f"{self.prog}: {message}{read_on}\n")


class TopParser(Parser):
    """The parser of the whole command line, with commands listed in groups."""

    def format_help(self) -> str:
        """The groups with their commands, and how to read on."""
        lines = [f"usage: {NAME} COMMAND [options]", "", ABOUT[: ABOUT.index("?") + 1], ABOUT[ABOUT.index("?") + 2 :]]
        for group, commands in GROUPS.items():
            lines += ["", f"{group}:"]
            lines += [f"  {name:9} {summary}" for name, summary in commands.items()]
        lines += ["", f"{NAME} help COMMAND says more of one; {NAME} --version", EXIT_STATUS]
        return "\n".join(lines) + "\n"


class CommandParser(Parser):
    """The parser of one command, completed by the command's module when parsing."""

    module: str | None = None
    _in_pieces = False

    def __init__(self, **settings: Any) -> None:
        # An abbreviation would change its meaning when an option is added.
        super().__init__(**settings, allow_abbrev=False)

    def complete(self) -> CommandParser:
        """Add the command's own arguments, once."""
        if self.module:
            command, self.module = importlib.import_module(self.module), None
            self.description = (command.__doc__ or "").partition("\n\n")[0]
            examples = tomllib.loads(EXAMPLES.read_text("utf-8"))[command.__name__.rpartition(".")[2]]
            lines = [f"  {bench.PROGRAM} {line}" for line in examples]
            self.epilog = "\n".join(["examples:", *lines, "", EXIT_STATUS])
            command.add_arguments(self)
            self.set_defaults(main=command.main)
        return self

    def parse_known_args(  # type: ignore[override]  # argparse has overloads; their results are one
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As argparse's, of the completed parser. Unknown arguments are refused here, with the command's help named."""
        self.complete()
        if self._subparsers or self._in_pieces:
            return super().parse_known_args(args, namespace)
        # Arguments and options in any order: argparse comes back here, for the options and then for the arguments.
        self._in_pieces = True
        arguments, unknown = self.parse_known_intermixed_args(args, namespace)
        self._in_pieces = False
        if unknown:
            self.error(hints.unknown_argument(unknown, self, _options_of_commands))
        return arguments, []


def _options_of_commands() -> dict[str, list[str]]:
    """The options of each command."""
    options = {}
    for name in COMMANDS:
        command = CommandParser()
        command.module = f"bench.cli.{name}"
        options[name] = list(command.complete()._option_string_actions)
    return options


def parser(line: Collection[str] = ()) -> argparse.ArgumentParser:
    """The whole command line; the commands named in a `line` have their arguments before parsing."""
    top = TopParser(prog=NAME, description=ABOUT, allow_abbrev=False)
    top.add_argument("--version", action="version", version=f"{NAME} {bench.__version__}")
    verbs = top.add_subparsers(required=True, metavar="COMMAND", dest="command", parser_class=CommandParser)
    for name in COMMANDS:
        command = verbs.add_parser(name, formatter_class=OneScreen)
        command.module = f"bench.cli.{name}"
        if name in line:
            command.complete()
    return top


def _words(argv: Sequence[str]) -> list[str]:
    """The words of a command line, with `help COMMAND` as `COMMAND --help`."""
    words = list(argv)
    while words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    return words or ["--help"]


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit status: 0 done, 1 something failed, 2 could not be done, 130 interrupted."""
    if "_ARGCOMPLETE" in os.environ:
        # A shell completes its line; nobody else waits for this import.
        with contextlib.suppress(ImportError):
            import argcomplete

            argcomplete.autocomplete(parser(os.environ.get("COMP_LINE", "").split()))
    if argv is None:
        argv = sys.argv[1:]
    words = _words(argv)
    if problem := hints.no_command(words, COMMANDS):
        print(f"{NAME}: {problem}", file=sys.stderr)
        return 2
    args = parser().parse_args(words)
    name = f"{NAME} {args.command}"
    try:
        return int(args.main(args))
    except BenchError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{name}: interrupted; everything it started is stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of the output is gone (`| head`): the interpreter's last flush must not fail either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        if not is_disk_full(error):
            raise
        where = ""
        if error.filename:
            where = f"{error.filename}: "
        print(f"{name}: {where}{DISK_FULL}; make room and try again", file=sys.stderr)
        return 2
