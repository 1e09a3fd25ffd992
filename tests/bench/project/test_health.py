"""A project that cannot say that it serves is refused before anything starts."""

from types import SimpleNamespace

import pytest

from bench.errors import BenchError
from bench.project import health
from bench.project.inspection import Page

NAME_IT = 'name a page that answers 200: health = "/..." in [tool.benchapp] of pyproject.toml'


def project(status, location=None, migrations_left=0, path="/"):
    page = Page(path, status, location, None, None, (), False, False, 0)
    facts = SimpleNamespace(pages=(page,), migrations_left=migrations_left)
    return SimpleNamespace(folder="/srv/shop", overlaid=True, health="/", facts=facts)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (project(302, "/en/"), f"/srv/shop: GET / redirects to /en/; {NAME_IT}"),
        (project(404), f"/srv/shop: GET / is answered with status 404; {NAME_IT}"),
        (project(500), f"/srv/shop: GET / is answered with status 500; {NAME_IT}"),
        (
            project(500, migrations_left=3),
            "/srv/shop: GET / is answered with status 500: 3 migrations are not applied to its database; "
            "run ./manage.py migrate",
        ),
    ],
)
def test_it_is_said_in_one_line(found, said):
    with pytest.raises(BenchError) as error:
        health.require(found, its_rows=True)
    assert str(error.value) == said


@pytest.mark.parametrize(
    ("found", "its_rows"),
    # On other rows than those that it was looked at with, a page may be there.
    [
        (project(200), True),
        (project(404), False),
        (project(500, migrations_left=3), False),
        (project(404, path="/a"), True),
    ],
)
def test_what_may_serve_is_tried(found, its_rows):
    health.require(found, its_rows)


def test_a_redirect_is_one_on_any_rows():
    with pytest.raises(BenchError, match="GET / redirects to /en/"):
        health.require(project(302, "/en/"), its_rows=False)
