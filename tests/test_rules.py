"""The rules of the house, held against the tree."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from bench import manifest, paths

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


@pytest.mark.parametrize("path", BENCH_FILES, ids=label)
def test_the_instrument_never_imports_the_site(path):
    assert not imported(path) & {"django", *SITE}


@pytest.mark.parametrize("path", sorted((paths.PROJECT / "bench" / "load").glob("*.py")), ids=label)
def test_load_adapters_are_pure(path):
    assert not imported(path) & {"subprocess", "time", "socket", "threading", "os", "httpx"}


@pytest.mark.parametrize("path", sorted((paths.PROJECT / "bench" / "report").rglob("*.py")), ids=label)
def test_reports_depend_only_on_results(path):
    modules = set(re.findall(r"^(?:from|import) (bench[\w.]*)", path.read_text("utf-8"), re.M))
    names = set(re.findall(r"^from bench import (.+)$", path.read_text("utf-8"), re.M))
    names = {name.strip() for line in names for name in line.strip("()").split(",")}
    forbidden = {"supervise", "deployment", "run", "trial", "load", "sample", "verify"}
    assert not {module.partition(".")[2].partition(".")[0] for module in modules} & forbidden
    assert not names & forbidden
    assert "subprocess" not in imported(path)


def test_results_depend_on_nothing():
    tree = ast.parse((paths.PROJECT / "bench" / "results.py").read_text("utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    assert {module for module in modules if module.startswith("bench")} <= {"bench.errors", "bench"}


def test_rendering_starts_nothing():
    assert "subprocess" not in imported(paths.PROJECT / "bench" / "render.py")


# A load tool's adapter may say which project its tool comes from.
@pytest.mark.parametrize("path", [path for path in BENCH_FILES if path.parent.name != "load"], ids=label)
def test_no_server_is_named_in_the_instrument(path):
    servers = {server.name for stack in manifest.stacks().values() for server in stack.servers}
    programs = {name for stack in manifest.stacks().values() for server in stack.servers for name in server.programs}
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
