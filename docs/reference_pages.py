"""Write the pages of docs/reference from what they describe, so that they cannot differ from it.

conf.py calls `write_all` before each build. The folder is not committed.
"""

from __future__ import annotations

import argparse
import ast
import functools
import inspect
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import chain
from pathlib import Path
from typing import Any

from bench import PROGRAM, paths
from bench.cli import main
from bench.measure.faults.kinds import FAULTS
from bench.measure.records import schema
from bench.measure.records.fault_outcomes import GROUPS as FAULT_GROUPS
from bench.serve.catalog import catalog, compatibility
from bench.serve.catalog.manifest import PLACES, Layer, Stack
from bench.serve.catalog.server import SERVERS, Break, Declaration, Server, source
from bench.serve.project import description
from bench.verify.outcome import GROUPS as CHECK_GROUPS
from bench.verify.suite import all_checks

FOLDER = Path(__file__).parent / "reference"
STATUSES = [
    ("0", "done; `up` also after Ctrl-C, once it serves"),
    ("1", "something failed: a check, a trial, a fault, a finding that is an error"),
    ("2", "it could not be done: a wrong argument, a missing program"),
    ("130, 143", "interrupted by Ctrl-C or SIGTERM; everything it started is stopped"),
    ("141", "the reader of its output has gone, as after `| head`"),
]
# Variables that no settings module of the kit's site reads, by the reader.
OTHER_VARIABLES = {
    "The command benchapp": [
        ("BENCHAPP_STATE", "the folder of rows, copies of databases and environments"),
        ("XDG_STATE_HOME", "without BENCHAPP_STATE an installed package has that folder below this one, as `benchapp`"),
        ("BENCH_USER", "as root: the user that runs servers, instead of the user of `sudo`, or `nobody`"),
        ("UV_PROJECT_ENVIRONMENT", "the project's environment, as uv has it"),
        ("VIRTUAL_ENV", "the active environment, of a project without another"),
    ],
    "The settings laid over another project's": [
        ("BENCHAPP_OUTSIDE", "1 in `env_file`: storages, caches, mail and tasks of other machines are used"),
        ("BENCHAPP_DATABASE_URL", "the database `default`; on a host in `secrets.env`"),
        ("BENCHAPP_POOL", "how connections are kept, as the value `pool`: none, conn_max_age, django, pgbouncer"),
    ],
    "Commands on a host": [
        ("BENCHAPP_STEP_LIMIT", "seconds that a step of `benchapp-deploy` may take, 900 by default"),
    ],
}


def write_all() -> None:
    """Write every page, and remove those of things that are gone."""
    pages = {
        "index.md": _index(),
        "command-line.md": _command_line(),
        "project-keys.md": _project_keys(),
        "values.md": _values(),
        "checks.md": _checks(),
        "faults.md": _faults(),
        "result-files.md": _result_files(),
        "environment.md": _environment(),
        **_stacks(),
        **_layers(),
    }
    for name, text in pages.items():
        _write(FOLDER / name, text.strip() + "\n")
    for path in FOLDER.rglob("*.md"):
        if str(path.relative_to(FOLDER)) not in pages:
            path.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    """Replace a page that has another text, at once: a concurrent build reads it whole."""
    if path.is_file() and path.read_text("utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(text, "utf-8")
    new.replace(path)


def _index() -> str:
    return """
# Reference

These pages are made from the program and the manifests when the documentation is built.

```{toctree}
:maxdepth: 1

command-line
project-keys
values
stacks/index
layers/index
checks
faults
../findings
result-files
environment
../glossary
```
"""


# --- The command line ----------------------------------------------------------------------------


def _command_line() -> str:
    """A section a command: its usage, arguments and options."""
    top = main.parser(main.COMMANDS)
    parts = ["# Command line", f"{top.description}", "Every command ends with one of these exit codes:"]
    parts.append(_table(("code", "meaning"), STATUSES))
    for name, _, command in _commands_of(top):
        parts += _command(name, main.COMMANDS[name], command)
        for inner, summary, part in _commands_of(command):
            parts += _command(f"{name} {inner}", summary, part)
    return "\n\n".join(parts)


def _commands_of(parser: argparse.ArgumentParser) -> list[tuple[str, str, argparse.ArgumentParser]]:
    """The commands of a parser: name, summary and parser."""
    commands = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            summaries = {item.dest: item.help or "" for item in action._choices_actions}
            for name, command in action.choices.items():
                commands.append((name, summaries.get(name, ""), command))
    return commands


def _command(name: str, summary: str, command: argparse.ArgumentParser) -> list[str]:
    parts = [f"## {name}"]
    if about := command.description or summary:
        parts.append(_sentence(about))
    for group in command._action_groups:
        rows = [_option(item) for item in group._group_actions if _is_shown(item)]
        if rows:
            parts.append(f"**{(group.title or '').capitalize()}**")
            parts.append(_table(("option", "meaning"), rows))
    if command.epilog:
        parts.append(f"```text\n{command.epilog.strip().replace(PROGRAM, 'benchapp')}\n```")
    return parts


def _is_shown(action: argparse.Action) -> bool:
    """False for help, hidden options, and commands, which have sections."""
    if isinstance(action, argparse._SubParsersAction):
        return False
    return action.dest != "help" and action.help != argparse.SUPPRESS


def _option(action: argparse.Action) -> tuple[str, str]:
    """The cells of one option or argument."""
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    names = [f"`{option}{value}`" for option in action.option_strings] or [f"`{value.strip()}`"]
    return ", ".join(names), (action.help or "") % {**vars(action), "prog": "benchapp"}


# --- Stacks and layers ---------------------------------------------------------------------------


def _stacks() -> dict[str, str]:
    """A page a stack, and their index."""
    stacks = catalog.read().stacks
    pages = {f"stacks/{name}.md": _stack(stack) for name, stack in stacks.items()}
    about = (
        "A stack is a chain of servers. Its page has the chain, what its servers are known not to do, and their files. "
        "[Stacks and layers](../../stacks.md) compares them."
    )
    pages["stacks/index.md"] = _listing("Stacks", about, {name: stack.title for name, stack in stacks.items()})
    return pages


def _listing(title: str, about: str, items: Mapping[str, str]) -> str:
    """An index page: a table of pages, which the menu has, too."""
    rows = [(f"[`{name}`]({name}.md)", text) for name, text in items.items()]
    menu = "\n".join(["```{toctree}", ":hidden:", "", *items, "```"])
    return f"# {title}\n\n{about}\n\n{_table(('name', 'what it is'), rows)}\n\n{menu}"


def _stack(stack: Stack) -> str:
    servers = [server.name for server in reversed(stack.servers)]
    parts = [f"# {stack.title}", f"`{stack.name}`", stack.about, _picture(["client", *servers, "Django"])]
    rows = [(f"`{server.name}`", _sentence(server.about), server.speaks) for server in stack.servers]
    parts.append(_table(("server, innermost first", "what it is", "speaks"), rows))
    if stack.reason:
        values = ", ".join(f"`{name} = {value!r}`" for name, value in stack.values.items())
        parts.append(f"**Unlike other stacks:** {values}{': ' if values else ''}{stack.reason}")
    if stack.production:
        parts.append(f"**In production:** {_sentence(stack.production)}")
    parts.append(_declared(compatibility.declared((), stack)))
    # The stack's own reason wins.
    broken = [*chain.from_iterable(server.breaks for server in stack.servers), *stack.breaks]
    parts.append(_broken({(item.fault, item.layers): item for item in broken}.values()))
    manifests = [folder / "stack.toml" for folder in stack.folders]
    parts.append(_files([*manifests, *_read_by(stack.servers, stack.folders)]))
    return "\n\n".join(part for part in parts if part)


def _layers() -> dict[str, str]:
    """A page a layer, and their index."""
    layers = catalog.read().layers
    pages = {f"layers/{name}.md": _layer(layer) for name, layer in layers.items()}
    about = (
        "A layer is a caching strategy over a stack. Its page says what it caches and where, what a write invalidates, "
        "and which checks it cannot pass. [Is a caching layer safe?](../../cache-safety.md) says how to prove it."
    )
    pages["layers/index.md"] = _listing("Layers", about, {name: layer.about for name, layer in layers.items()})
    return pages


def _layer(layer: Layer) -> str:
    where = {
        "front": ["client", layer.title, "web server", "application server", "Django"],
        "server": ["client", f"web server with {layer.title}", "application server", "Django"],
        "app": ["client", "web server", "application server", f"Django with {layer.title}"],
    }
    parts = [f"# {layer.title}", f"`{layer.name}`", layer.about]
    if not layer.is_none:
        parts.append(_picture(where[layer.scope]))
    rows = [
        ("caches", layer.caches),
        ("where", PLACES[layer.kind] if layer.kind else "nowhere"),
        ("services", ", ".join(map(_service, layer.services)) or "none"),
        ("a write invalidates", layer.invalidation or "nothing: the time to live ends a stale page"),
        ("many requests for a missing page", layer.coalesces or "each renders it"),
        ("several web hosts", layer.several_hosts or f"no: {layer.one_host}"),
    ]
    parts.append(_table(("", ""), rows))
    if layer.unsafe:
        parts.append(f"**Unsafe:** {_sentence(layer.unsafe)}")
    if layer.in_site:
        parts.append(f"**In your own code:** {_sentence(layer.in_site)}")
    parts += [_declared(layer.declares), _broken(layer.breaks)]
    parts.append(_files([*layer.folder.iterdir(), *_read_by(layer.servers, [layer.folder])]))
    return "\n\n".join(part for part in parts if part)


def _service(name: str) -> str:
    return "memcached or redis, by the value `cache`" if name == compatibility.CHOSEN_CACHE else name


def _declared(items: Iterable[Declaration]) -> str:
    rows = []
    for item in items:
        only = [*item.stacks, *filter(None, [item.server])]
        rows.append((_link(item.check), _reason(item.reason, only)))
    return f"## Known limitations\n\n{_table(('check', 'reason'), rows)}" if rows else ""


def _reason(text: str, only: Sequence[str]) -> str:
    """A reason and what it is limited to."""
    return f"{_sentence(text)}. Only with {', '.join(only)}." if only else _sentence(text)


def _link(name: str) -> str:
    """A link to what is written of a check or fault."""
    page = "faults" if name in FAULTS else "checks"
    return f"[`{name}`](../{page}.md#{name})"


def _broken(items: Iterable[Break]) -> str:
    rows = [(_link(item.fault), _reason(item.reason, item.layers)) for item in items]
    return f"## Faults that visitors notice\n\n{_table(('fault', 'what happens'), rows)}" if rows else ""


def _read_by(servers: Iterable[Server], folders: Sequence[Path]) -> list[Path]:
    """The manifests of servers, and the sources of the files that they read: in these folders or their own."""
    files = []
    for server in servers:
        home = SERVERS / server.name
        files.append(home / "server.toml")
        for name in server.file_names:
            files += filter(None, [source(folder, name) for folder in (*folders, home, SERVERS)])
    return files


def _files(files: Iterable[Path]) -> str:
    """The files that a reader opens next, by their paths in the clone."""
    names = sorted({path.relative_to(paths.DEPLOY.parent) for path in files})
    lines = [f"- `{name}`" for name in names if "__pycache__" not in name.parts]
    return "## Files\n\n" + "\n".join(lines)


def _picture(boxes: Sequence[str]) -> str:
    """A chain as a list, which chain.css draws as boxes with an arrow between two; a narrow page wraps the boxes."""
    items = "".join(f"<li><span>{escape(text)}</span></li>" for text in boxes)
    return f'<ol class="chain">{items}</ol>'


# --- Checks, faults, results ---------------------------------------------------------------------


def _checks() -> str:
    """A section a group, with a line a check."""
    parts = [
        "# Checks",
        "`benchapp verify` makes these; without a layer only the group `behaviour`. `--check NAME` makes one of them.",
    ]
    for group, promise in CHECK_GROUPS.items():
        checks = [check for check in all_checks() if check.group == group]
        parts += [f"## {group}", _sentence(promise)]
        parts += [f"({check.name})=\n- `{check.name}`: {check.title}" for check in checks]
    return "\n\n".join(parts)


def _faults() -> str:
    """A section a group, with a line a fault."""
    parts = [
        "# Faults",
        "`benchapp faults` makes these while visitors request pages. `--fault NAME` makes one of them.",
    ]
    for group, about in FAULT_GROUPS.items():
        faults = [fault for fault in FAULTS.values() if fault.group == group]
        parts += [f"## {group}", _sentence(about)]
        parts += [f"({fault.name})=\n- `{fault.name}`: {fault.title}" for fault in faults]
    return "\n\n".join(parts)


def _result_files() -> str:
    """A table a record of a run's folder, from its JSON Schema."""
    document = schema.schema()
    parts = [
        "# Result files",
        document["description"],
        "`benchapp report --schema` prints the JSON Schema. `run.json` is a `run`, `environment.json` an "
        "`environment`, a line of `trials.jsonl` a `trial`, of `verify.jsonl` a `check`, of `faults.jsonl` a `fault`.",
    ]
    for name, record in document["$defs"].items():
        if "properties" not in record:
            continue
        rows = [(f"`{key}`", _sentence(_meaning(value))) for key, value in record["properties"].items()]
        parts += [f"## {name}", _table(("field", "meaning"), rows)]
    return "\n\n".join(parts)


def _meaning(value: dict[str, Any]) -> str:
    """The description of a property, also of one that may be null."""
    candidates = [value, *value.get("anyOf", ())]
    return next((item["description"] for item in candidates if "description" in item), "")


# --- Keys, values, variables ---------------------------------------------------------------------


def _project_keys() -> str:
    """A table a struct of `[tool.benchapp]`, from its docstring."""
    parts = ["# Keys of a project", "Every key is optional. [Your own project](../your-own-project.md) has examples."]
    structs = []
    for _, item in inspect.getmembers(description, inspect.isclass):
        # Other classes there are no tables of the file.
        if (item.__doc__ or "").startswith("`[tool.benchapp"):
            structs.append(item)
    structs.sort(key=lambda item: item is not description.Description)
    for struct in structs:
        about, _, fields = inspect.cleandoc(struct.__doc__ or "").partition("\n\n")
        title = re.sub(r"^`(.+?)`.*", r"\1", about, flags=re.S)
        parts += [f"## {title}", about, _table(("key", "meaning"), _documented(fields))]
    return "\n\n".join(parts)


def _documented(text: str) -> list[tuple[str, str]]:
    """The fields of a docstring: a name, two spaces or more, and its meaning, which may go on indented."""
    rows: list[tuple[str, str]] = []
    for line in text.splitlines():
        if match := re.match(r"(\w+(?:, \w+)*)\s{2,}(\S.*)", line):
            names = [f"`{name}`" for name in match[1].split(", ")]
            rows.append((", ".join(names), match[2]))
        elif rows and line.startswith("  "):
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {line.strip()}")
    return [(name, _sentence(meaning)) for name, meaning in rows]


def _values() -> str:
    """Each file of values as it is: its comments are its documentation."""
    parts = ["# Values", "Templates read these. `--set NAME=VALUE` changes one."]
    for name in ("bench", "production", "sizes", "debian"):
        text = (paths.DEPLOY / "values" / f"{name}.toml").read_text("utf-8")
        parts += [f"## {name}.toml", f"```toml\n{text.strip()}\n```"]
    return "\n\n".join(parts)


# A method of `env` names the kind of a variable; `caches` has two functions for one kind.
VARIABLE = re.compile(r"env\.(\w+)\('([A-Z_]+)'|_(cache)\(env, '([A-Z_]+)'")


def _environment() -> str:
    """The variables that the kit's own site reads, with the comments of config/settings.py."""
    source = (paths.DEPLOY.parent / "config" / "settings.py").read_text("utf-8")
    lines = source.splitlines()
    rows = []
    for statement in ast.parse(source).body:
        # Of a condition and its body the body has the kind.
        matches = list(VARIABLE.finditer(ast.unparse(statement)))
        meaning = _sentence(_comment_above(lines, statement.lineno))
        if matches and meaning:
            kind, name = filter(None, matches[-1].groups())
            rows.append((f"`{name}`", kind.replace("_", " "), meaning))
    parts = [
        "# Environment variables",
        "## The demo site",
        "Its settings read these. A variable that cannot be understood stops the site with one line.",
        _table(("variable", "kind", "meaning"), rows),
        "`CACHING_<LAYER>=1` adds a layer of `benchapp.caching`, `CACHING_<LAYER>_<OPTION>` one with options, such as "
        "`CACHING_STATICGENERATOR_ROOT`: [all of them](../caching.md#layers). The settings laid over another project's "
        "read them, too.",
    ]
    for reader, variables in OTHER_VARIABLES.items():
        described = [(f"`{name}`", _sentence(meaning)) for name, meaning in variables]
        parts += [f"## {reader}", _table(("variable", "meaning"), described)]
    return "\n\n".join(parts)


def _comment_above(lines: Sequence[str], number: int) -> str:
    """The comment that ends right above a line."""
    words: list[str] = []
    for line in reversed(lines[: number - 1]):
        if not line.startswith("# ") or line.startswith("# ---"):
            break
        words.insert(0, line[2:])
    return " ".join(words)


# --- Markdown ------------------------------------------------------------------------------------


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = []
    for cells in (header, ["---"] * len(header), *rows):
        escaped = [cell.replace("|", "\\|") for cell in cells]
        lines.append(f"| {' | '.join(escaped)} |")
    return "\n".join(lines)


def _sentence(text: str) -> str:
    """A text that begins with a capital letter, or with a name that has none: gunicorn, uWSGI, cache_page."""
    words = text.split()
    if len(words) < 2 or words[0] in _names() or not re.fullmatch("[a-z]+(-[a-z]+)*[,:;]?", words[0]):
        return " ".join(words)
    return " ".join([words[0][0].upper() + words[0][1:], *words[1:]])


@functools.cache
def _names() -> frozenset[str]:
    """The names of layers and servers."""
    known = catalog.read()
    servers = chain.from_iterable(stack.servers for stack in known.stacks.values())
    return frozenset([*known.layers, *(server.name for server in servers)])
