"""Rendering: which files a server reads, and what templates may hold."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from bench import paths
from bench.catalog import catalog
from bench.errors import BenchError
from bench.production import host as one_host
from bench.serve import render
from tests.cases import bare, for_files

# Documents may ask for what is so; server configuration may not.
TEMPLATES = [
    path
    for folder in ("stacks", "layers", "common", "services")
    for path in sorted((paths.DEPLOY / folder).rglob("*"))
    if path.is_file() and path.suffix != ".md"
]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(paths.DEPLOY)))
def test_a_template_holds_no_logic_beyond_loops_and_includes(path):
    text = path.read_text("utf-8")
    statements = re.findall(r"\{%-?\s*(\w+)", text)
    assert set(statements) <= {"for", "endfor", "include"}
    for expression in re.findall(r"\{\{(.+?)\}\}|\{%(.+?)%\}", text):
        words = "".join(expression)
        assert not re.search(r"\b(if|else|set|replace|split|join)\b", words), words
        # Bounds are arithmetic; any other filter is work for Python.
        assert set(re.findall(r"\|\s*(\w+)", words)) <= {"min", "max"}, words


def test_an_unknown_name_in_a_template_names_the_file():
    with pytest.raises(BenchError, match=r"x\.conf: 'nosuch' is undefined; docs/adding-a-stack\.md lists the names"):
        render.text("{{ nosuch }}", {}, "x.conf")


def files_of(stack: str, server: str, layer: str = "none") -> dict:
    """The templates of one server by their rendered names, as paths below deploy/."""
    case = bare(catalog.read().stack(stack), *catalog.read().joined_layers(layer))
    chosen = next(item for item in case.servers if item.name == server)
    files = render.server_files(chosen, case)
    return {name: path and str(path.relative_to(paths.DEPLOY)) for name, path in files.items()}


def test_a_main_file_comes_from_the_stack_its_base_or_the_common_folder():
    assert files_of("nginx-uwsgi", "uwsgi")["uwsgi.processes.ini"] == "common/uwsgi/uwsgi.processes.ini"
    own = files_of("cherokee-uwsgi-roundrobin", "uwsgi")
    assert own["uwsgi.processes.ini"] == "stacks/cherokee-uwsgi-roundrobin/uwsgi.processes.ini"
    assert own["uwsgi.ini"] == "common/uwsgi/uwsgi.ini"
    assert own["uwsgi/socket.scgi.ini"] == "common/uwsgi/socket.scgi.ini"


def test_parts_and_manifests_are_no_files_of_a_server():
    names = files_of("nginx-gunicorn", "gunicorn")
    assert "gunicorn.conf.py" in names
    assert not [name for name in names if "_" in name or name.endswith(".toml")]


def test_a_point_of_a_layer_is_filled_by_the_layer_or_by_none_or_is_empty():
    assert files_of("nginx-uwsgi", "nginx")["layer/nginx.pages.conf"] == "layers/none/nginx.pages.conf"
    assert files_of("nginx-uwsgi", "nginx")["layer/nginx.http.conf"] is None
    layered = files_of("nginx-uwsgi", "nginx", "nginx-memcached")
    assert layered["layer/nginx.http.conf"] == "layers/nginx-memcached/nginx.http.conf"
    # The file of a server that a layer brings is no point of another's.
    assert {name.split(".")[0] for name in files_of("nginx-uwsgi", "varnish", "varnish")} == {"varnish"}


def test_a_server_in_front_takes_the_front_address():
    case = bare(catalog.read().stack("nginx-gunicorn"), *catalog.read().joined_layers("varnish"))
    assert [server.name for server in case.servers] == ["gunicorn", "nginx", "varnish"]
    places = render.Places(*[""] * 13, bind="192.0.2.1", port=80)
    wiring = render.wire(case, places, iter([8001]).__next__)
    assert [wiring.listens[name][0].text for name in ("nginx", "varnish")] == ["127.0.0.1:8001", "192.0.2.1:80"]


def test_the_database_is_found_in_a_directory_whose_name_has_a_plus_sign():
    """As that of joined layers: in the query of a URL a plain plus sign is a space."""
    service = catalog.read().services["postgresql"]
    values = catalog.read().values["production"]
    places = replace(one_host.production_places(values), run="/tmp/run/nginx~view-cache+varnish")
    context = render.service_context(service, {}, for_files("gunicorn", values=values), places, Path())
    url = render.text(service.env["DATABASE_URL"], context, "env")
    assert parse_qs(urlsplit(url).query) == {"host": [places.run]}
