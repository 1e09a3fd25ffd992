"""The rules of the house, held against the tree."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from bench import paths
from bench.serve.catalog import catalog
from bench.serve.project import description

SITE = ("benchapp", "benchapp_overlay", "config", "fixtures")
INSIDE = paths.PROJECT / "bench" / "serve" / "inside"
INSIDE_FILES = sorted(INSIDE.rglob("*.py"))
BENCH_FILES = sorted({*(paths.PROJECT / "bench").rglob("*.py")} - {*INSIDE_FILES})
SITE_FILES = sorted(path for folder in SITE for path in (paths.PROJECT / folder).rglob("*.py"))


@cache
def imports_of(path: Path) -> list[ast.Import | ast.ImportFrom]:
    tree = ast.parse(path.read_text("utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]


def imported(path: Path) -> set[str]:
    """The top-level packages that a module imports."""
    names = set()
    for node in imports_of(path):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def importing(files: Iterable[Path], *names: str) -> list[str]:
    """The files that import one of these packages, each with those."""
    found = {path.relative_to(paths.PROJECT): imported(path) & set(names) for path in files}
    return [f"{path} imports {', '.join(sorted(wrong))}" for path, wrong in found.items() if wrong]


def test_the_site_never_imports_the_instrument():
    assert importing(SITE_FILES, "bench") == []


# Packages of the kit that each of these may import besides itself. `caching` and `serving` go to production with any
# project; what is inside of one while it is verified, but for the part for the kit's own site, needs no other.
REUSABLE = {
    "benchapp/caching": (),
    "benchapp/login_limit": (),
    "benchapp/serving": (),
    "benchapp_overlay": ("benchapp.caching",),
    "bench/serve/inside": ("benchapp.caching", "benchapp.serving", "benchapp_overlay"),
}


@pytest.mark.parametrize("folder", REUSABLE)
def test_what_is_laid_over_any_project_knows_nothing_of_the_site(folder):
    allowed = (folder.replace("/", "."), *REUSABLE[folder])
    files = [path for path in sorted((paths.PROJECT / folder).rglob("*.py")) if INSIDE / "site" not in path.parents]
    assert files and importing(files, "config", "fixtures", "tests") == []
    for path in files:
        modules = re.findall(
            r"^\s*(?:from|import) ((?:benchapp_overlay|benchapp|bench)\b[\w.]*)", path.read_text("utf-8"), re.M
        )
        assert all(f"{module}.".startswith(tuple(f"{name}." for name in allowed)) for module in modules), path
        assert not any(f"{module}.".startswith("bench.serve.inside.site.") for module in modules), path


def test_the_part_for_the_kits_own_site_imports_nothing_of_the_instrument():
    for path in sorted((INSIDE / "site").rglob("*.py")):
        modules = re.findall(r"^\s*(?:from|import) (bench\b[\w.]*)", path.read_text("utf-8"), re.M)
        assert all(f"{module}.".startswith("bench.serve.inside.") for module in modules), path


def test_the_instrument_never_imports_the_site():
    assert importing(BENCH_FILES, "django", *SITE) == []


def test_load_adapters_are_pure():
    files = (paths.PROJECT / "bench" / "measure" / "load").glob("*.py")
    assert importing(files, "subprocess", "time", "socket", "threading", "os", "httpx2") == []


# The packages of bench/ in the order of docs/architecture.md: each imports only those above it.
ORDER = [
    "stats",
    "records",
    "load",
    "machine",
    "catalog",
    "project",
    "serve",
    "production",
    "verify",
    "measure",
    "faults",
    "hosts",
    "report",
    "reproduce",
    "cli",
]
ALONE = {"errors", "paths", "interrupt", "programs", "words"}


def packages_imported(path: Path) -> set[str]:
    """The packages and modules of bench/ that a module imports."""
    names = set()
    for node in imports_of(path):
        if isinstance(node, ast.ImportFrom) and node.module == "bench":
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bench."):
            names.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("bench.")}
    return names


def test_a_package_imports_only_those_above_it():
    for path in BENCH_FILES:
        package = path.relative_to(paths.PROJECT / "bench").parts[0]
        above = set(ORDER[: ORDER.index(package) + 1]) if package in ORDER else set()
        if package in ("records", "report"):  # records depend on stats alone, reports on the files of a run alone
            above = {"stats", "records", package}
        assert packages_imported(path) <= above | ALONE or package == "__main__.py", path


def test_only_the_packages_and_five_modules_lie_in_bench():
    found = {
        path.stem
        for path in (paths.PROJECT / "bench").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert found <= {*ORDER, *ALONE, "inside", "__init__", "__main__"}


# What a process has of its own and gives back when it ends: warm processes, and reserved ports.
STATE = {("bench/serve/project/run_command.py", "_warm"), ("bench/serve/machine/ports.py", "_reserved")}
CONTAINERS = {"Counter", "defaultdict", "deque", "dict", "list", "set"}


def state_of(tree: ast.Module) -> Iterator[str]:
    """The names that a module binds to nothing yet, to be filled, and those that its functions declare global."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from node.names
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and is_empty_container(node.value):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            # A Mapping cannot be filled.
            if not ast.unparse(getattr(node, "annotation", target)).startswith("Mapping["):
                yield ast.unparse(target)


def is_empty_container(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in CONTAINERS and not value.args
    return value is not None and ast.unparse(value) in ("[]", "{}")


def test_no_module_of_the_instrument_has_state():
    found = {
        (str(path.relative_to(paths.PROJECT)), name)
        for path in BENCH_FILES
        for name in state_of(ast.parse(path.read_text("utf-8")))
    }
    assert found == STATE


# Lines at most. A longer one has more than one idea.
MAX_FUNCTION = 50


def test_functions_are_short():
    files = [*BENCH_FILES, *INSIDE_FILES, *SITE_FILES, *sorted((paths.PROJECT / "tests").rglob("*.py"))]
    long = []
    for path in files:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > MAX_FUNCTION:
                    long.append(f"{path.relative_to(paths.PROJECT)}: {node.name}: {lines} lines, not {MAX_FUNCTION}")
    assert long == []


def test_reports_records_and_rendering_start_nothing():
    bench = paths.PROJECT / "bench"
    files = [*(bench / "report").rglob("*.py"), *(bench / "records").rglob("*.py"), bench / "serve" / "render.py"]
    assert importing(files, "subprocess") == []


def test_no_server_is_named_in_the_instrument():
    known = catalog.read()
    servers = [server for it in (*known.stacks.values(), *known.layers.values()) for server in it.servers]
    names = {name.lower() for server in servers for name in (server.name, *server.programs)}
    named = re.compile(rf"\b({'|'.join(map(re.escape, sorted(names)))})\b")
    # A load tool's adapter may say which project its tool comes from.
    for path in BENCH_FILES:
        if path.parent.name != "load":
            assert named.findall(path.read_text("utf-8").lower()) == [], path


def test_no_name_of_the_kits_own_site_is_in_the_instrument():
    said = description.read(paths.PROJECT)
    own = said.description
    pages = {own.health, own.ready, *own.public, own.login.url if own.login else ""} - {"", "/"}
    names = [*pages, said.settings, "small.txt", "large.txt"]
    folders = [paths.PROJECT / app / "management" / "commands" for app in ("benchapp", "bench/serve/inside/site")]
    commands = {path.stem for folder in folders for path in folder.glob("[a-z]*.py")}
    assert len(commands) > 5 and len(pages) > 3
    for path in BENCH_FILES:
        text = path.read_text("utf-8")
        assert [name for name in names if name in text] == [], path
        assert strings_of(path) & commands - ANY_PROJECTS == set(), path


# Commands of the probes of any project, or that its own probes may have.
ANY_PROJECTS = {"siteurls", "verifyaccount", "proberows"}


def strings_of(path: Path) -> set[str]:
    """The strings in a module."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_no_command_goes_through_a_shell():
    assert [path for path in BENCH_FILES + INSIDE_FILES + SITE_FILES if "shell=True" in path.read_text("utf-8")] == []


def test_python_configuration_parses_as_it_stands():
    files = sorted(paths.DEPLOY.rglob("*.py"))
    assert files
    for path in files:
        ast.parse(path.read_text("utf-8"), str(path))


def test_values_have_the_same_names():
    bench, production = (
        tomllib.loads((paths.DEPLOY / "values" / f"{name}.toml").read_text("utf-8")) for name in ("bench", "production")
    )
    production.pop("places")
    assert bench.keys() == production.keys()
    assert bench["env"].keys() == production["env"].keys()
