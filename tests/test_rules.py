"""The rules of the house, held against the tree."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from bench import paths
from bench.catalog import catalog
from bench.project import description

SITE = ("benchapp", "config", "fixtures", "probes")
BENCH_FILES = sorted((paths.PROJECT / "bench").rglob("*.py"))
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


def test_the_site_never_imports_the_probes():
    # Only config/urls.py and config/settings.py name the app, as a string, under BENCHAPP_PROBES.
    assert importing([path for path in SITE_FILES if "probes" not in path.parts], "probes") == []


def test_the_overlay_goes_to_production_without_the_site_and_the_probes():
    files = sorted((paths.PROJECT / "overlay").rglob("*.py"))
    assert files and importing(files, "bench", "config", "fixtures", "probes") == []


def test_caching_never_imports_the_site():
    files = sorted((paths.PROJECT / "benchapp" / "caching").rglob("*.py"))
    for path in files:
        modules = re.findall(r"^\s*(?:from|import) (benchapp[\w.]*)", path.read_text("utf-8"), re.M)
        assert all(f"{module}.".startswith("benchapp.caching.") for module in modules), path
    assert importing(files, "config", "fixtures") == []


def test_the_probes_for_any_project_need_only_the_caching_app():
    folder = paths.PROJECT / "probes"
    files = [path for path in sorted(folder.rglob("*.py")) if "site" not in path.relative_to(folder).parts]
    assert files
    assert importing(files, "config", "fixtures") == []
    for path in files:
        modules = re.findall(r"^\s*(?:from|import) ((?:benchapp|probes\.site)[\w.]*)", path.read_text("utf-8"), re.M)
        assert all(f"{module}.".startswith("benchapp.caching.") for module in modules), path


def test_the_instrument_never_imports_the_site():
    assert importing(BENCH_FILES, "django", *SITE) == []


def test_load_adapters_are_pure():
    files = (paths.PROJECT / "bench" / "load").glob("*.py")
    assert importing(files, "subprocess", "time", "socket", "threading", "os", "httpx") == []


# The packages of bench/ in the order of docs/architecture.md: each imports only those above it.
ORDER = [
    "figures",
    "load",
    "results",
    "host",
    "catalog",
    "project",
    "serve",
    "verify",
    "measure",
    "faults",
    "fleet",
    "report",
    "cli",
]
ALONE = {"errors", "paths", "interrupt", "programs"}


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
        if package in ("results", "report"):  # results depend on figures alone, reports on the files of a run alone
            above = {"figures", "results", package}
        assert packages_imported(path) <= above | ALONE or package == "__main__.py", path


def test_only_the_packages_and_four_modules_lie_in_bench():
    found = {
        path.stem
        for path in (paths.PROJECT / "bench").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert found <= {*ORDER, *ALONE, "__init__", "__main__"}


# Lines at most. A longer one has more than one idea.
MAX_MODULE, MAX_CLASS, MAX_FUNCTION = 400, 150, 40


def lengths(path: Path) -> Iterator[tuple[str, int, int]]:
    """The name, the lines and the limit of a module, and of each class and function in it."""
    text = path.read_text("utf-8")
    yield "", len(text.splitlines()), MAX_MODULE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            limit = MAX_CLASS if isinstance(node, ast.ClassDef) else MAX_FUNCTION
            yield f": {node.name}", (node.end_lineno or 0) - node.lineno + 1, limit


def test_modules_classes_and_functions_are_short():
    others = [path for folder in ("benchmarks", "tests") for path in sorted((paths.PROJECT / folder).rglob("*.py"))]
    files = [*BENCH_FILES, *SITE_FILES, *others]
    found = [(f"{path.relative_to(paths.PROJECT)}{name}", *it) for path in files for name, *it in lengths(path)]
    assert [f"{name}: {lines} lines, not {limit}" for name, lines, limit in found if lines > limit] == []


def test_reports_results_and_rendering_start_nothing():
    bench = paths.PROJECT / "bench"
    files = [*(bench / "report").rglob("*.py"), *(bench / "results").rglob("*.py"), bench / "serve" / "render.py"]
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
    folders = [paths.PROJECT / app / "management" / "commands" for app in ("benchapp", "probes/site")]
    commands = {path.stem for folder in folders for path in folder.glob("[a-z]*.py")}
    assert len(commands) > 5 and len(pages) > 3
    for path in BENCH_FILES:
        text = path.read_text("utf-8")
        assert [name for name in names if name in text] == [], path
        assert strings_of(path) & commands - ANY_PROJECTS == set(), path


# Commands of the probes of any project, or that its own probes may have; and words of descriptions.
ANY_PROJECTS = {"siteurls", "verifyaccount", "removeprobes", "makerow", "writerow", "backup", "restore"}


def strings_of(path: Path) -> set[str]:
    """The strings in a module."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_no_command_goes_through_a_shell():
    assert [path for path in BENCH_FILES + SITE_FILES if "shell=True" in path.read_text("utf-8")] == []


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
