"""docs/caching.md: its tables are those of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from bench import paths
from benchapp.caching import cacheability, checks, hosts, pages, registry
from benchapp.caching.conf import DEFAULTS

TEXT = (paths.KIT / "docs" / "caching.md").read_text("utf-8")


def rows(heading: str) -> list[list[str]]:
    """The cells of the table of a section, without its head."""
    section = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_each_setting_has_its_default():
    documented = {cells[0].strip("`"): cells[1] for cells in rows("Settings")}
    assert documented.keys() == DEFAULTS.keys()
    for name, default in documented.items():
        if default.startswith("`"):
            assert ast.literal_eval(default.strip("`")) == DEFAULTS[name]
    for name in re.findall(r"`([\w*]+)`", TEXT.partition("list of campaign parameters:")[2].partition("\n")[0]):
        assert name in DEFAULTS["CACHING_QUERY_IGNORED"]


def test_each_layer_has_its_options():
    documented = {cells[0].strip("`"): set(re.findall(r"`(\w+)`", cells[2])) for cells in rows("Layers")}
    known = {name: {*layer.options, *layer.optional} for name, layer in registry.LAYERS.items()}
    assert documented == known


def test_each_id_of_a_check():
    text = " ".join(cells[1] for cells in rows("Install"))
    source = (paths.KIT / "benchapp/caching/checks.py").read_text("utf-8")
    assert set(re.findall(r"[EW]\d{3}", text)) == set(re.findall(r'id="caching\.([EW]\d{3})"', source))
    assert checks.TYPES.keys() == DEFAULTS.keys()


def reasons() -> Iterator[str]:
    """The reasons in the functions that give one."""
    for module, prefix in ((cacheability, "reason"), (hosts, "reason"), (pages, "_")):
        for node in ast.walk(ast.parse(Path(module.__file__).read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith(prefix):
                returned = (part for part in ast.walk(node) if isinstance(part, ast.Return))
                for part in returned:
                    yield from re.findall(r"'([a-z][a-z-]+)=?'", ast.unparse(part))
                    yield from re.findall(r"f'([a-z-]+)=\{", ast.unparse(part))


def test_each_reason_of_x_cache():
    documented = {name for cells in rows("X-Cache") for name in re.findall(r"`([a-z-]+)(?:=NAME)?`", cells[0])}
    assert set(reasons()) - {"private"} <= documented
    assert {"store", "page-headers", "layer"} <= documented
    extra = documented - set(reasons()) - {"store", "page-headers", "layer"}
    assert extra == set()
