"""The table of options: each is declared once, with the type of its value and its combinations.

A command lists its options; help, refusals and shell completion are derived from the table. Here are the options of
serving. An option whose values need the code of one command is declared in the module of the command.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.cli import argument_types
from bench.columns import columns
from bench.errors import BenchError
from bench.printer import Printer, aside
from bench.serve.catalog import catalog
from bench.serve.catalog.names import NO_LAYER, NO_LIMIT, variants
from bench.serve.catalog.values import PRODUCTION, parse_change, parse_variable
from bench.serve.deployment import database
from bench.serve.deployment.database import Database
from bench.serve.machine.http import Target
from bench.serve.project import pythons
from bench.serve.project.opened import UnderTest, is_kits, open_project
from bench.words import joined, option_words, setting_words

Completer = Callable[[argparse.Namespace], Iterable[str]]


@dataclass(frozen=True)
class Option:
    """An option, or an argument with a name in capitals.

    names     as written
    help      one line
    group     title of the group in a command's help
    metavar   of the value; empty for a flag
    read      parses the value; raises BenchError for a wrong one
    many      whether the option may be repeated; the value is a tuple
    by_name   whether it may be repeated with a name and its value, as `read` returns them; the value is a dict
    nargs     number of words of an argument, as in argparse
    usual     the default value
    complete  names for a shell, given the line so far
    resumes   whether allowed with --resume: not stored in a folder of results
    hosts     whether allowed with --inventory, which names an existing deployment
    target    whether allowed with --target, which names a running site
    excludes  incompatible options
    needs     the option to which this one adds
    source    the reason why this option excludes others (see SOURCES)
    """

    names: tuple[str, ...]
    help: str
    group: str = "options"
    metavar: str = ""
    read: Callable[[str], Any] = str
    many: bool = False
    by_name: bool = False
    nargs: str = "*"
    required: bool = False
    usual: Any = None
    complete: Completer | None = None
    resumes: bool = False
    hosts: bool = False
    target: bool = False
    excludes: tuple[str, ...] = ()
    needs: str = ""
    source: str = ""

    @property
    def name(self) -> str:
        """The name used in messages."""
        return self.names[-1]

    @property
    def dest(self) -> str:
        """The attribute of the parsed command line."""
        return self.name.strip("-").replace("-", "_").lower()

    def is_given(self, args: argparse.Namespace) -> bool:
        """True if a command line has the option, with another value than the default."""
        value = getattr(args, self.dest)
        return value is not False and value not in (self.usual, None, (), {})


class Add(argparse.Action):
    """Collect the values of an option, each once."""

    def __call__(
        self, parser: argparse.ArgumentParser, args: argparse.Namespace, value: Any, option: str | None = None
    ) -> None:
        """Add one value, or an argument's values."""
        if not isinstance(value, list | tuple):
            value = [value]
        setattr(args, self.dest, tuple(dict.fromkeys((*getattr(args, self.dest), *value))))


class AddNamed(argparse.Action):
    """Collect the values of an option by their names; the last value of a name counts."""

    def __call__(
        self, parser: argparse.ArgumentParser, args: argparse.Namespace, value: Any, option: str | None = None
    ) -> None:
        """Add one name with its value."""
        name, of_name = value
        setattr(args, self.dest, {**getattr(args, self.dest), name: of_name})


# --- What is served ------------------------------------------------------------------------------

SERVED = "what is served"


STACKS = Option(
    ("STACK",),
    "a stack of `list`; --stack STACK is the same",
    SERVED,
    "STACK",
    argument_types.name,
    many=True,
    usual=(),
    complete=lambda _: catalog.read().stacks,
    hosts=True,
)
# Of a command with one stack: read it by one_stack.
STACK = replace(STACKS, nargs="?")
LAYER = Option(
    ("--layer",),
    f"a layer, or several with + (default: {NO_LAYER})",
    SERVED,
    "LAYER",
    argument_types.layer,
    usual=NO_LAYER,
    complete=lambda _: catalog.read().layers,
    hosts=True,
    target=True,
)
LAYERS = replace(LAYER, help="a layer, or several with + (repeatable)", many=True, usual=())
SIZE = Option(
    ("--size",),
    f"bronze, silver, gold or container (default: {NO_LIMIT})",
    SERVED,
    "SIZE",
    argument_types.name,
    usual=NO_LIMIT,
    complete=lambda _: catalog.read().sizes,
)
SIZES = replace(SIZE, help=f"bronze, silver, gold or container (repeatable; default: {NO_LIMIT})", many=True, usual=())
DATABASE = Option(
    ("--database",),
    "sqlite, postgresql or a URL (default: sqlite)",
    SERVED,
    "DATABASE",
    resumes=True,
    target=True,
)
ENV = Option(
    ("--env",),
    "a variable of the site (repeatable)",
    SERVED,
    "NAME=VALUE",
    parse_variable,
    by_name=True,
    usual={},
    target=True,
)
SET = Option(
    ("--set",), "a value, such as processes=5 (repeatable)", SERVED, "NAME=VALUE", parse_change, by_name=True, usual={}
)
PYTHON = Option(
    ("--python",), "serve with another Python, or its path (repeatable)", SERVED, "X.Y", many=True, usual=()
)
PROJECT = Option(
    ("--project",),
    "the project's folder (default: this one, if it has a manage.py)",
    SERVED,
    "DIR",
    Path,
    resumes=True,
    target=True,
)
CONFIG = Option(
    ("--config",),
    "file with its [tool.benchapp], if not pyproject.toml",
    SERVED,
    "FILE",
    Path,
    resumes=True,
    target=True,
)
PLAIN = Option(("--plain",), "run the project's own settings module, without benchapp's", SERVED)
# For a project examined or served.
APPLIED = (ENV, SET, PROJECT, CONFIG)
PROJECT_SERVED = (DATABASE, ENV, SET, PYTHON, PROJECT, CONFIG)

ALL = Option(("--all",), "every stack and layer not named", SERVED)
TARGET = Option(
    ("--target",),
    "a running site of this project, under --layer",
    SERVED,
    "URL",
    Target.parse,
    target=True,
    source="names a running site",
)
INVENTORY = Option(
    ("--inventory",),
    "the deployment on the hosts of an Ansible inventory",
    SERVED,
    "FILE",
    Path,
    resumes=True,
    hosts=True,
    source="is for an existing deployment",
)
ALLOW_WRITES = Option(
    ("--allow-writes",),
    "write to a project's own database too (default: to copies)",
    SERVED,
    resumes=True,
    target=True,
)

# --- Results -------------------------------------------------------------------------------------

RESULTS = "results"

JSON = Option(("--json",), "as JSON, for programs", RESULTS, resumes=True, hosts=True, target=True)
OUTPUT = Option(("-o", "--output"), "a new or empty folder", RESULTS, "DIR", Path, hosts=True)
LIST_FINDINGS = Option(("--list",), "list all rules, and examine nothing", RESULTS)


def format_of(names: Sequence[str], text: str) -> Option:
    """The option for one of several forms of the output."""
    read, complete = argument_types.choice(names), lambda _: names
    return Option(("--format",), text, RESULTS, "FORMAT", read, complete=complete)


# --- Files and servers ---------------------------------------------------------------------------

VALUES = Option(
    ("--values",),
    f"a FILE.toml of your own (default: {PRODUCTION})",
    "files",
    "FILE",
    usual=PRODUCTION,
    hosts=True,
    excludes=("--local",),
)
FORCE = Option(("--force",), "also render a stack unfit for production", "files", hosts=True)
LOCAL = Option(("--local",), "files for `up` on this machine", "files")
PORT = Option(("--port",), "the port on 127.0.0.1 (default: a free one)", SERVED, "PORT", argument_types.port)
RESTART = Option(("--restart",), "restart dead processes, as systemd does, and say so", SERVED)
WORKERS = Option(("--workers",), "also run the project's task workers, on the queues that it names", SERVED)
PID = Option(("--pid",), "the process id of `up`", SERVED, "PID", argument_types.count(2**22), excludes=("--port",))


# --- From the table to a command -----------------------------------------------------------------


def add(parser: argparse.ArgumentParser, options: Iterable[Option]) -> None:
    """Give a command its options, in groups."""
    groups: dict[str, argparse._ArgumentGroup] = {}
    for option in options:
        if option.group not in groups:
            groups[option.group] = parser.add_argument_group(option.group)
        _add(groups[option.group], option)


def _add(group: argparse._ArgumentGroup, option: Option) -> None:
    settings: dict[str, Any] = {"help": option.help, "default": option.usual, "metavar": option.metavar}
    settings["type"] = refusing(option.read)
    if option.many:
        settings["action"] = Add
    if option.by_name:
        settings["action"] = AddNamed
    if not option.metavar:
        settings = {"help": option.help, "action": "store_true"}
    if option.required:
        settings["required"] = True

    names = option.names
    if not option.name.startswith("-"):
        names = (option.dest,)
        if option.many:
            settings["nargs"] = option.nargs
    actions = [group.add_argument(*names, **settings)]
    if option.name == STACKS.name:
        # Several stacks may follow the option, as they may follow the command.
        hidden = settings | {"help": argparse.SUPPRESS, "nargs": {"*": "+"}.get(option.nargs)}
        actions.append(group.add_argument("--stack", dest=option.dest, **hidden))

    if option.complete:
        for action in actions:
            complete_by(action, option.complete)


def refusing(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """A type for argparse: a BenchError becomes a refusal that names the option."""

    def checked(text: str) -> Any:
        try:
            return read(text)
        except BenchError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return checked


def complete_by(action: argparse.Action, names: Completer) -> None:
    """Have a shell complete the values of an option with names."""
    # argcomplete looks for it.
    action.completer = lambda parsed_args, **_: list(names(parsed_args))  # type: ignore[attr-defined]


# Option that excludes others -> attribute of the allowed ones.
SOURCES = {"--resume": "resumes", "--inventory": "hosts", "--target": "target"}


def refuse(args: argparse.Namespace, options: Sequence[Option]) -> None:
    """Raise BenchError, in one line, for incompatible options."""
    given = {option.name: option for option in options if option.is_given(args)}
    for source, attribute in SOURCES.items():
        if source not in given or not given[source].source:
            continue
        reason = given[source].source.format(getattr(args, given[source].dest))
        for name, option in given.items():
            if name != source and not getattr(option, attribute):
                raise BenchError(f"{source} {reason}; leave out {name}")
    for name, option in given.items():
        for other in option.excludes:
            if other in given:
                raise BenchError(f"{name} and {other} exclude each other; leave out one of them")
        if option.needs and option.needs not in given and not SOURCES.keys() & given:
            raise BenchError(f"{name} goes with {option.needs}; add that, or leave out {name}")


def unnamed(args: argparse.Namespace, *others: str) -> str:
    """The omitted arguments, of STACK and others whose absence means all; empty with --all.

    A stopped run and hosts name theirs.
    """
    if args.all or getattr(args, "resume", None) or getattr(args, "inventory", None):
        return ""
    names = []
    if not args.stack:
        names.append("STACK")
    names += [option for option in others if not getattr(args, option.strip("-"))]
    return joined(names)


# --- Values that several commands read -----------------------------------------------------------


def project_of(args: argparse.Namespace) -> UnderTest:
    """The project of the command line; a note on stderr names the demo site. Raises BenchError if unusable."""
    if stand_in := demo_site(args):
        aside(f"note: the project is {stand_in}")
    return open_project(project_folder(args), args.config, plain=getattr(args, "plain", False))


def project_folder(args: argparse.Namespace) -> Path | None:
    """The folder of --project; by default the current folder, if it has a manage.py; else None.

    A resumed run names its project itself.
    """
    given: Path | None = args.project
    if given or getattr(args, "resume", None):
        return given
    if not Path("manage.py").is_file():
        return None
    return Path.cwd()


def demo_site(args: argparse.Namespace) -> str:
    """The demo site with the reason, in words, as the stand-in for a missing project; otherwise empty."""
    if project_folder(args) or getattr(args, "resume", None):
        return ""
    return f"the demo site, because {Path.cwd()} has no manage.py"


def database_of(args: argparse.Namespace, project: UnderTest) -> Database:
    """The database of the command line. Raises BenchError if unusable."""
    return database.parse(project, args.database)


def check_writes(args: argparse.Namespace) -> None:
    """Raise BenchError for --allow-writes without a project with its own database."""
    if args.allow_writes and not getattr(args, "resume", None) and is_kits(project_folder(args)):
        raise BenchError("--allow-writes goes with --project; add that, or leave out --allow-writes")


def one_stack(args: argparse.Namespace) -> str:
    """The one stack of the command line, as a variant for its Python.

    Raises BenchError unless exactly one is given.
    """
    if len(args.stack) != 1:
        if not args.stack:
            raise BenchError("name one STACK")
        raise BenchError("name one STACK, or serve them one after another")
    return variants(args.stack, "python", one_python(args))[0]


def one_python(args: argparse.Namespace) -> tuple[str, ...]:
    """The version of the Python for the site, or none. Raises BenchError for several."""
    versions = pythons.choose(args.python)
    if len(versions) > 1:
        raise BenchError("--python: it is served by one Python at a time; give one")
    return versions


def served_words(args: argparse.Namespace) -> list[str]:
    """The given options of a deployment, except layers, Pythons and sizes, which results name themselves."""
    return option_words(
        {
            "--project": args.project and str(args.project),
            "--config": args.config and str(args.config),
            "--database": args.database,
            "--env": setting_words(args.env),
            "--set": setting_words(args.set),
        }
    )


def print_names(items: list[dict[str, str]], as_json: bool) -> int:
    """Print names with descriptions, as a table or as JSON; returns 0."""
    if as_json:
        print(json.dumps(items, indent=2))
        return 0
    printer = Printer()
    printer.say("\n".join(columns([tuple(item.values()) for item in items], width=printer.width)))
    return 0
