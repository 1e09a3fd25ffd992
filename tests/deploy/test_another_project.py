"""Another project's production files: servers and systemd accept them, and they serve it with what is in them alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.project.under_test import open_project
from tests.deploy.production_host import (
    NAME,
    Host,
    ask,
    make_certificate,
    refused_by_servers,
    refused_by_systemd,
    serving,
)

pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("own_var")]


@pytest.mark.parametrize(
    ("stack", "layer"),
    [
        ("nginx-gunicorn", "none"),
        ("nginx-uwsgi", "nginx-microcache"),
        ("apache-modwsgi", "none"),
        ("nginx-cherrypy", "none"),
    ],
)
def test_it_is_served_from_the_rendered_files(new_project, tmp_path, tmp_path_factory, stack, layer):
    project = open_project(new_project())
    folder = tmp_path / "host"
    folder.mkdir()
    # The host has one virtual environment; here it is the kit's, which has none of the packages laid over the project.
    made = Host(stack, layer, folder, make_certificate(tmp_path_factory.mktemp("certificate")), project)
    assert refused_by_servers(made) == {}
    assert refused_by_systemd(made) == []
    # What its servers are built from there is with them, not in the project.
    assert (Path(made.places.conf) / "requirements-modwsgi.lock").is_file() == (stack == "apache-modwsgi")
    with serving(made):
        # The project's own settings know another host, and the packages laid over it are nowhere but in its files.
        assert ask(made, "/who/", NAME)[0] == 200
        assert ask(made, "/nowhere/", NAME)[0] == 404
    stored = [path for path in (Path(made.places.store) / "microcache").rglob("*") if path.is_file()]
    assert bool(stored) == (layer == "nginx-microcache")
