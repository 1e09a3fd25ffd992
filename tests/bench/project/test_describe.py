"""The description of a project in a file elsewhere (`--describe FILE`)."""

from __future__ import annotations

import pytest

from bench.errors import BenchError
from bench.project import description, workload
from bench.project.under_test import open_project, recorded_project
from tests.bench.project.test_description import MANAGE

SAID = """
[tool.benchapp]
env_file = "variables"
health = "/up/"

[tool.benchapp.workloads.browse]
file = "browse.txt"
"""


@pytest.fixture
def described(tmp_path):
    """A file in a folder of its own, with what it names beside it."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "shop.toml").write_text(SAID)
    (folder / "variables").write_text("SHOP=1\n")
    (folder / "browse.txt").write_text("/\n/about/\n")
    return folder / "shop.toml"


@pytest.fixture
def shop(tmp_path):
    """A project with a description of its own, which is not asked."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "manage.py").write_text(MANAGE)
    (folder / "pyproject.toml").write_text('[tool.benchapp]\nhealth = "/own/"\n')
    return folder


def test_a_file_elsewhere_takes_the_place_of_the_projects_own(shop, described):
    project = description.read(shop, describe=described)
    assert (project.description.health, project.env) == ("/up/", {"SHOP": "1"})
    assert project.settings == "shop.settings"
    assert description.read(shop).description.health == "/own/"


def test_what_it_names_is_beside_it(described):
    kit = open_project(describe=described)
    assert workload.workload(kit, "browse").steps == ("/", "/about/")
    assert kit.described == str(described) and open_project().described == ""


def test_a_file_that_is_not_there_is_one_line(shop, tmp_path):
    with pytest.raises(BenchError) as refused:
        description.read(shop, describe=tmp_path / "gone.toml")
    assert str(refused.value) == f"--describe {tmp_path / 'gone.toml'}: no such file; it has [tool.benchapp]"
    (tmp_path / "other.toml").write_text("[tool.ruff]\nline-length = 120\n")
    with pytest.raises(BenchError) as refused:
        description.read(shop, describe=tmp_path / "other.toml")
    assert str(refused.value).startswith(f"--describe {tmp_path / 'other.toml'}: it has no [tool.benchapp]; ")


def test_a_run_that_is_resumed_has_the_description_that_it_began_with(described):
    kit = open_project()
    assert recorded_project(kit, "", str(described)).described == str(described)
    assert recorded_project(kit, "", "") is kit
    with pytest.raises(BenchError, match="it was begun with the project of the kit; leave out"):
        recorded_project(open_project(describe=described), "", "")
