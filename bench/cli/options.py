"""Options that several commands share, each declared once, and the types of their values."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from bench import paths
from bench.errors import BenchError
from bench.measure.records.folder import RUN_FILE
from bench.measure.run import guards, workload
from bench.measure.stats.columns import columns
from bench.printer import Printer
from bench.serve.catalog import catalog
from bench.serve.catalog.names import NO_LAYER, NO_LIMIT
from bench.serve.project import description, pythons
from bench.serve.project.opened import UnderTest, is_kits, open_project

REPEATABLE = " (repeatable; default: {})"
USUAL = "all but historic"
MAX_PORT = 65535


def completed(action: argparse.Action, names: Callable[[argparse.Namespace], Iterable[str]]) -> None:
    """Have the shell complete the values of an option or argument with the names that there are for a command line."""
    # argcomplete looks for it.
    action.completer = lambda parsed_args, **_: list(names(parsed_args))  # type: ignore[attr-defined]


def add_stacks(parser: argparse._ActionsContainer, name: str, **how: Any) -> None:
    """An option or argument that names stacks."""
    completed(parser.add_argument(name, **how), lambda _: catalog.read().stacks)


def add_served(
    parser: argparse.ArgumentParser,
    *,
    layers: bool = False,
    layer_default: str = "all",
    sizes: bool = False,
    pythons: bool = False,
) -> None:
    """The options that say what is served, the same for every command: read them with `project_of` and those below.

    With `layers`, `sizes` and `pythons` there may be several: then their value is a list, or None without one.
    """
    group = parser.add_argument_group("what is served")
    layer = layer_default if layers else NO_LAYER
    _add_named(group, "--layer", "a layer, or several with +", layers, layer, lambda: catalog.read().layers)
    _add_named(group, "--size", "bronze, silver or gold", sizes, NO_LIMIT, lambda: catalog.read().sizes)
    _add_database(group, "sqlite")
    _add_values(group)
    group.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="X.Y",
        help="serve by another Python, also by its path" + (" (repeatable)" if pythons else ""),
    )
    add_project(group)


def add_project(parser: argparse._ActionsContainer) -> None:
    """`--project` and `--config`; the values are a folder and a file, or None."""
    parser.add_argument(
        "--project",
        type=Path,
        metavar="PATH",
        help="the project's folder (default: this one, if it has a manage.py)",
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="file with its [tool.benchapp], if not pyproject.toml"
    )


def add_applied(parser: argparse.ArgumentParser, *, database: bool = False) -> None:
    """Of the options of `add_served` those that apply to a project that is looked at and not served."""
    group = parser.add_argument_group("what is looked at")
    if database:
        _add_database(group, "that of its settings")
    _add_values(group)
    add_project(group)


def _add_database(group: argparse._ActionsContainer, default: str) -> None:
    group.add_argument("--database", metavar="D", help=f"sqlite, postgresql or a URL (default: {default})")


def _add_values(group: argparse._ActionsContainer) -> None:
    for option, metavar, what in (
        ("--env", "K=V", "a variable of the site"),
        ("--set", "N=V", "a value, such as processes=5"),
    ):
        group.add_argument(option, action="append", default=[], metavar=metavar, help=f"{what} (repeatable)")


def project_of(args: argparse.Namespace) -> UnderTest:
    """The project that the command line names. Raises BenchError when it cannot be served."""
    return open_project(project_folder(args), args.config)


def project_folder(args: argparse.Namespace) -> Path | None:
    """The folder of --project; without it the one that the caller stands in, where that has a manage.py; else None.

    A run that is resumed names its project itself.
    """
    given: Path | None = args.project
    if given or getattr(args, "resume", None):
        return given
    return Path.cwd() if Path("manage.py").is_file() else None


def served_words(args: argparse.Namespace) -> list[str]:
    """The options of `add_served` that were given, but for layers and Pythons, which results name themselves."""
    size = None if args.size == NO_LIMIT else args.size
    once = {"--project": args.project, "--config": args.config, "--size": size, "--database": args.database}
    pairs = [(option, value) for option, value in once.items() if value is not None]
    pairs += [("--env", value) for value in args.env] + [("--set", value) for value in args.set]
    return [str(word) for pair in pairs for word in pair]


def stack_of(args: argparse.Namespace) -> str:
    """The one stack of the command line, as a variant of the Python that serves it. Raises BenchError for several."""
    return pythons.variants([args.stack], one_python(args))[0]


def one_python(args: argparse.Namespace) -> tuple[str, ...]:
    """The version of the Python that serves the site, or none. Raises BenchError for several."""
    versions = pythons.choose(args.python)
    if len(versions) > 1:
        raise BenchError("--python: it is served by one Python at a time; give one")
    return versions


def _add_named(
    group: argparse._ActionsContainer,
    option: str,
    words: str,
    several: bool,
    usual: str,
    names: Callable[[], Iterable[str]],
) -> None:
    """An option for one of these names; with `several` it is None without one, else `usual`."""
    how: dict[str, Any] = {"action": "append"} if several else {"default": usual}
    default = REPEATABLE.format(usual) if several else f" (default: {usual})"
    completed(group.add_argument(option, metavar=option[2].upper(), help=words + default, **how), lambda _: names())


def add_workload(parser: argparse.ArgumentParser, **how: Any) -> None:
    """`--workload`, completed with those of the project on the command line."""
    known = f"a workload of the project; NAME{workload.CLOSE}: with a connection a request"
    default = f"{'repeatable; ' if how else ''}default: the first"
    action = parser.add_argument("--workload", metavar="W", help=f"{known} ({default})", **how)
    completed(action, lambda given: _workloads(project_folder(given), given.config))


def _workloads(folder: Path | None, describe: Path | None) -> list[str]:
    """The workloads of a project, none of one that cannot be read: its command says why."""
    try:
        return workload.names(description.read_description(folder or paths.KIT, describe)[0])
    except BenchError:
        return []


def add_write(parser: argparse.ArgumentParser, what: str) -> None:
    """`--allow-writes`; `what` is what it allows. See check_write."""
    parser.add_argument(
        "--allow-writes", action="store_true", help=f"{what} in a project's own database (default: in copies)"
    )


def check_write(args: argparse.Namespace) -> None:
    """Raise BenchError for a --allow-writes that allows nothing."""
    if args.allow_writes and is_kits(project_folder(args)):
        raise BenchError("--allow-writes is for the database of a --project; name one, or leave out --allow-writes")


def add_guard(parser: argparse.ArgumentParser, usual: Mapping[str, float] = guards.BOUNDS) -> None:
    """`--guard`; the value is a list of NAME=BOUND, or None. `usual` are the guards that there are."""
    bounds = ", ".join(f"{name}={bound:g}" for name, bound in usual.items())
    parser.add_argument(
        "--guard", action="append", metavar="G=BOUND", help=f"bound of a guard, or off (repeatable): {bounds}"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`; a bool."""
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")


def print_names(found: list[dict[str, str]], as_json: bool) -> int:
    """Print what there is, with what each is about, as a table or as JSON; returns 0."""
    if as_json:
        print(json.dumps(found, indent=2))
        return 0
    printer = Printer()
    printer.say("\n".join(columns([tuple(item.values()) for item in found], width=printer.width)))
    return 0


def add_folder(parser: argparse.ArgumentParser, what: str) -> None:
    """`--output` and `--resume`: where the results go, and which unfinished `what` to resume; Paths or None.

    The parser is kept for `asked.refuse_with_resume`.
    """
    parser.set_defaults(parser=parser)
    for names, words in (
        (("-o", "--output"), "folder of the results (default: results/DATE-TIME)"),
        (("--resume",), f"resume the {what} in that folder"),
    ):
        parser.add_argument(*names, type=results_folder, metavar="DIR", help=words)


def add_inventory(parser: argparse.ArgumentParser, what: str, required: bool = False) -> None:
    """`--inventory`; the value is a path, or None."""
    parser.add_argument("--inventory", required=required, type=Path, metavar="FILE", help=what)


def results_folder(text: str) -> Path:
    """A folder of results, there or not, for argparse."""
    path = Path(text)
    try:
        (path / RUN_FILE).stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error.strerror}") from None
    return path


def count(most: int = 1_000_000) -> Callable[[str], int]:
    """A whole number from 1 to `most`, for argparse."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {most}")
        return int(text)

    return read


def seconds(text: str) -> int:
    """A time such as 90s, 3m or 1h in seconds, for argparse."""
    found = re.fullmatch(r"([1-9][0-9]{0,6})([smh])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 90s, 3m or 1h")
    return int(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]


def share(text: str) -> float:
    """A number from 0 to 0.99, for argparse."""
    with contextlib.suppress(ValueError):
        if 0 <= float(text) <= 0.99:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a share such as 0.05")
