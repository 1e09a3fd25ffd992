"""Options that several commands share, each declared once, and the types of their values."""

from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from bench.catalog import catalog, manifest, sizes
from bench.errors import BenchError
from bench.measure import guards
from bench.results.folder import RUN_FILE

REPEATABLE = " (repeatable; default: {})"
USUAL = "all but the historic"


def completed(action: argparse.Action, names: Callable[[], Iterable[str]]) -> None:
    """Have the shell complete the values of an option or argument with these names."""
    action.completer = lambda **_: list(names())  # type: ignore[attr-defined]  # argcomplete looks for it


def add_stacks(parser: argparse.ArgumentParser, name: str, **how: Any) -> None:
    """An option or argument that names stacks."""
    completed(parser.add_argument(name, **how), lambda: catalog.read().stacks)


def add_layer(parser: argparse.ArgumentParser, several: bool = False) -> None:
    """`--layer`: one, by default none, or `several`, by default all (then the value is None)."""
    words = "a layer, or several joined with +"
    if several:
        action = parser.add_argument("--layer", action="append", metavar="L", help=words + REPEATABLE.format("all"))
    else:
        action = parser.add_argument("--layer", default=manifest.NO_LAYER, metavar="L", help=f"{words} (default: none)")
    completed(action, lambda: catalog.read().layers)


def add_size(parser: argparse.ArgumentParser, several: bool = False) -> None:
    """`--size`: one, by default unlimited, or `several` (then the value is None without one)."""
    words = "limit memory and CPU time: bronze, silver or gold (deploy/values/sizes.toml), or unlimited"
    if several:
        default = REPEATABLE.format(sizes.UNLIMITED)
        action = parser.add_argument("--size", action="append", metavar="S", help=words + default)
    else:
        action = parser.add_argument(
            "--size", default=sizes.UNLIMITED, metavar="S", help=f"{words} (default: unlimited)"
        )
    completed(action, lambda: (sizes.UNLIMITED, *catalog.read().sizes))


def add_database(parser: argparse.ArgumentParser, default: str = "sqlite") -> None:
    """`--database`; the value is None without it."""
    parser.add_argument(
        "--database",
        metavar="URL|postgresql",
        help=f"sqlite, postgresql (a private cluster) or a URL (default: {default})",
    )


def add_project(parser: argparse.ArgumentParser) -> None:
    """`--project`; the value is a folder or None. `main` selects it before the command starts."""
    parser.add_argument(
        "--project",
        type=Path,
        metavar="PATH",
        help="the folder of another Django project's manage.py (default: the site that the kit ships)",
    )


def add_write(parser: argparse.ArgumentParser, what: str) -> None:
    """`--write`; `what` is what it allows. See check_write."""
    parser.add_argument(
        "--write", action="store_true", help=f"{what} in a database that a --project uses itself (default: in copies)"
    )


def check_write(args: argparse.Namespace) -> None:
    """Raise BenchError for a --write that allows nothing."""
    if args.write and args.project is None:
        raise BenchError("--write allows writes to the database of a --project; name one, or leave out --write")


def add_env(parser: argparse.ArgumentParser) -> None:
    """`--env`; the value is a list of NAME=VALUE."""
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="K=V",
        help="a variable of the site's environment; `run` stores it with the results (repeatable)",
    )


def add_set(parser: argparse.ArgumentParser) -> None:
    """`--set`; the value is a list of NAME=VALUE."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="change a value of deploy/values/bench.toml, or of those that --values names (repeatable)",
    )


def add_python(parser: argparse.ArgumentParser, several: bool = False) -> None:
    """`--python`: one, or `several`; the value is a list of words for `bench.project.pythons.choose`."""
    parser.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="X.Y|PATH",
        help="another Python that serves the site, by version on PATH or by path"
        + (REPEATABLE.format("the instrument's") if several else ""),
    )


def add_guard(parser: argparse.ArgumentParser, usual: Mapping[str, float] = guards.BOUNDS) -> None:
    """`--guard`; the value is a list of NAME=BOUND, or None. `usual` are the guards that there are."""
    bounds = ", ".join(f"{name}={bound:g}" for name, bound in usual.items())
    parser.add_argument(
        "--guard",
        action="append",
        metavar="NAME=BOUND",
        help=f"the bound beyond which a guard voids what was measured, or `off` (repeatable; defaults: {bounds})",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`; a bool."""
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")


def add_to(parser: argparse.ArgumentParser) -> None:
    """`--to`: where the results go; a Path or None."""
    parser.add_argument(
        "--to", type=results_folder, metavar="DIR", help="folder of the results (default: results/DATE-TIME)"
    )


def add_folder(parser: argparse.ArgumentParser, what: str) -> None:
    """`--to` and `--resume`: where the results go, and which unfinished `what` to resume; Paths or None."""
    add_to(parser)
    parser.add_argument("--resume", type=results_folder, metavar="DIR", help=f"resume the {what} in that folder")


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


def count(text: str) -> int:
    """A whole number from 1, for argparse."""
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def seconds(text: str) -> int:
    """A time such as 90s, 3m or 1h in seconds, for argparse."""
    found = re.fullmatch(r"([1-9][0-9]{0,6})([smh])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 90s, 3m or 1h")
    return int(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]


def between(low: float, high: float, what: str) -> Callable[[str], float]:
    """The type of a number from `low` to `high`, for argparse; `what` names it in the error."""

    def number(text: str) -> float:
        with contextlib.suppress(ValueError):
            if low <= float(text) <= high:
                return float(text)
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")

    return number


def port_number(text: str) -> int:
    """A TCP port from 1 to 65535, for argparse."""
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; use a number from 1 to 65535")
    return int(text)
