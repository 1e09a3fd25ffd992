"""The rules of the house, held against the tree."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from bench import paths
from bench.catalog import catalog

SITE = ("benchapp", "config", "fixtures", "probes")
BENCH_FILES = sorted((paths.PROJECT / "bench").rglob("*.py"))
SITE_FILES = sorted(path for folder in SITE for path in (paths.PROJECT / folder).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """The top-level packages that a module imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def label(path: Path) -> str:
    return str(path.relative_to(paths.PROJECT))


@pytest.mark.parametrize("path", SITE_FILES, ids=label)
def test_the_site_never_imports_the_instrument(path):
    assert "bench" not in imported(path)


@pytest.mark.parametrize("path", [path for path in SITE_FILES if "probes" not in path.parts], ids=label)
def test_the_site_never_imports_the_probes(path):
    # Only config/urls.py and config/settings.py name the app, as a string, under BENCHAPP_PROBES.
    assert "probes" not in imported(path)


@pytest.mark.parametrize("path", sorted((paths.PROJECT / "benchapp" / "caching").rglob("*.py")), ids=label)
def test_caching_never_imports_the_site(path):
    modules = re.findall(r"^\s*(?:from|import) (benchapp[\w.]*)", path.read_text("utf-8"), re.M)
    assert all(f"{module}.".startswith("benchapp.caching.") for module in modules)
    assert not imported(path) & {"config", "fixtures"}


@pytest.mark.parametrize("path", BENCH_FILES, ids=label)
def test_the_instrument_never_imports_the_site(path):
    assert not imported(path) & {"django", *SITE}


@pytest.mark.parametrize("path", sorted((paths.PROJECT / "bench" / "load").glob("*.py")), ids=label)
def test_load_adapters_are_pure(path):
    assert not imported(path) & {"subprocess", "time", "socket", "threading", "os", "httpx"}


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
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "bench":
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bench."):
            names.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("bench.")}
    return names


@pytest.mark.parametrize("path", [path for path in BENCH_FILES if path.name != "__main__.py"], ids=label)
def test_a_package_imports_only_those_above_it(path):
    package = path.relative_to(paths.PROJECT / "bench").parts[0]
    above = set(ORDER[: ORDER.index(package) + 1]) if package in ORDER else set()
    if package == "report":
        above = {"figures", "results", "report"}  # a report is made from the files of a run alone
    assert packages_imported(path) <= above | ALONE


def test_only_the_packages_and_four_modules_lie_in_bench():
    found = {
        path.stem
        for path in (paths.PROJECT / "bench").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert found <= {*ORDER, *ALONE, "__init__", "__main__"}


@pytest.mark.parametrize("name", ["report", "results"])
def test_reports_and_results_start_nothing(name):
    for path in (paths.PROJECT / "bench" / name).rglob("*.py"):
        assert "subprocess" not in imported(path)


def test_rendering_starts_nothing():
    assert "subprocess" not in imported(paths.PROJECT / "bench" / "serve" / "render.py")


# A load tool's adapter may say which project its tool comes from.
@pytest.mark.parametrize("path", [path for path in BENCH_FILES if path.parent.name != "load"], ids=label)
def test_no_server_is_named_in_the_instrument(path):
    servers = {server.name for stack in catalog.read().stacks.values() for server in stack.servers}
    programs = {
        name for stack in catalog.read().stacks.values() for server in stack.servers for name in server.programs
    }
    text = path.read_text("utf-8").lower()
    assert not [name for name in sorted(servers | programs) if re.search(rf"\b{re.escape(name)}\b", text)]


@pytest.mark.parametrize("path", BENCH_FILES + SITE_FILES, ids=label)
def test_no_shell_and_no_blind_sleep_in_front_of_a_probe(path):
    assert "shell=True" not in path.read_text("utf-8")


def test_values_have_the_same_names():
    bench, production = (
        tomllib.loads((paths.DEPLOY / "values" / f"{name}.toml").read_text("utf-8")) for name in ("bench", "production")
    )
    production.pop("places")
    assert bench.keys() == production.keys()
    assert bench["env"].keys() == production["env"].keys()


def test_every_requirement_says_why():
    lines = (paths.PROJECT / "requirements.txt").read_text("utf-8").splitlines()
    unexplained = [line for line in lines if line and not line.startswith("#") and "  # " not in line]
    assert not unexplained
