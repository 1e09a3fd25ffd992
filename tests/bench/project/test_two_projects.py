"""Two projects at the same time in one process: neither knows of the other."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import httpx
import pytest

from bench.project.under_test import UnderTest, open_project
from bench.serve import database
from bench.serve.case import Case, must_resolve
from bench.serve.deployment import deployed
from tests.projects import NewProject

pytestmark = pytest.mark.servers


@pytest.fixture
def shop(new_project: NewProject) -> Iterator[UnderTest]:
    """A project beside the kit's own; what the kit keeps of it, where servers can read it, goes with the test."""
    found = open_project(new_project(said='[tool.benchapp]\npublic = ["/"]\n'))
    yield found
    shutil.rmtree(found.var)


def case_of(project: UnderTest) -> Case:
    return must_resolve(project, "gunicorn", "none", database=database.parse(project, None), changes={"processes": 1})


def home(url: str) -> str:
    answer = httpx.get(f"{url}/", trust_env=False, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.text


def test_the_kits_own_site_and_another_project_serve_side_by_side(shop):
    with deployed(case_of(open_project())) as ours, deployed(case_of(shop)) as theirs:
        assert (ours.case.project.recorded, theirs.case.project.recorded) == ("", str(shop.folder))
        for _ in range(2):
            assert home(theirs.url) == "home"
            assert "The Long Table</title>" in home(ours.url)
        # Nor does one of them use what the other has.
        assert ours.case.project.static_root != theirs.case.project.static_root
        assert ours.env["DATABASE_URL"] != theirs.env["DATABASE_URL"]
