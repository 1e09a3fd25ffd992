"""Rendering: which files a server reads, and what templates may hold."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import count
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from bench import paths
from bench.errors import BenchError
from bench.serve.catalog import catalog
from bench.serve.deployment import render
from bench.serve.deployment.case import Case
from bench.serve.deployment.layout import HostPaths, Layout
from bench.serve.deployment.placed import Placed
from bench.serve.production import one_host
from tests.cases import bare, for_files


def test_an_unknown_name_in_a_template_names_the_file():
    with pytest.raises(BenchError, match=r"x\.conf: 'nosuch' is undefined; docs/adding-a-stack\.md lists the names"):
        render.text("{{ nosuch }}", {}, "x.conf")


def files_of(stack: str, server: str, layer: str = "none") -> dict[str, list[str]]:
    """The templates of one server by the names of its files, the uppermost first, as paths below deploy/."""
    case = bare(catalog.read().stack(stack), *catalog.read().joined_layers(layer))
    chosen = next(item for item in case.servers if item.name == server)
    files = render.server_files(chosen, case)
    return {name: [str(path.relative_to(paths.DEPLOY)) for path in templates] for name, templates in files.items()}


def test_the_file_of_a_layer_lies_over_that_of_the_server():
    below = "servers/nginx/nginx.conf.j2"
    assert files_of("nginx-uwsgi", "nginx") == {"nginx.conf": [below], "unavailable.html": ["servers/unavailable.html"]}
    layered = files_of("nginx-uwsgi", "nginx", "varnish+nginx-memcached")["nginx.conf"]
    assert layered == ["layers/nginx-memcached/nginx.conf.j2", "layers/varnish/nginx.conf.j2", below]


def written(case: Case, folder: Path) -> dict[str, str]:
    """The files of a case, as they are rendered, by name."""
    places = Layout(folder, folder).places(case.project, case.project.worker(), 8000)
    placed = Placed(case, places).wired(count(8001).__next__)
    return {path.name: path.read_text("utf-8") for path in render.write_files(placed, folder)}


def test_layers_replace_blocks_of_what_lies_below(tmp_path):
    nginx = written(for_files("nginx-granian", "varnish+nginx-memcached"), tmp_path)["nginx.conf"]
    assert "real_ip_header X-Real-IP;" in nginx
    assert "memcached_pass finished_pages;" in nginx
    assert "--- Layer nginx-memcached ---" in nginx
    # Flat: it includes only what the distribution brings.
    assert re.findall(r"include (.*);", nginx) == ["/etc/nginx/mime.types"]


def test_a_template_of_which_nothing_is_left_makes_no_file(tmp_path, monkeypatch):
    case = for_files("nginx-granian")
    (tmp_path / "nginx.conf.j2").write_text("{% if listener == 'tls' %}\nlisten 443 ssl;\n{% endif %}\n", "utf-8")
    monkeypatch.setattr(render, "server_files", lambda *_: {"nginx.conf": (tmp_path / "nginx.conf.j2",)})
    target = tmp_path / "conf"
    target.mkdir()
    assert written(case, target) == {}


def test_a_server_in_front_takes_the_front_address():
    case = bare(catalog.read().stack("nginx-gunicorn"), *catalog.read().joined_layers("varnish"))
    assert [server.name for server in case.servers] == ["gunicorn", "nginx", "varnish"]
    places = HostPaths(*[""] * 15, bind="192.0.2.1", port=80)
    placed = Placed(case, places).wired(iter([8001]).__next__)
    assert [placed.listens[name][0].text for name in ("nginx", "varnish")] == ["127.0.0.1:8001", "192.0.2.1:80"]


def test_the_database_is_found_in_a_directory_whose_name_has_a_plus_sign():
    """As that of joined layers: in the query of a URL a plain plus sign is a space."""
    service = catalog.read().services["postgresql"]
    values = catalog.read().values["production"]
    places = replace(one_host.production_places(values), run="/tmp/run/nginx~view-cache+varnish")
    context = render.service_context(service, Placed(for_files("gunicorn", values=values), places))
    url = render.text(service.env["DATABASE_URL"], context, "env")
    assert parse_qs(urlsplit(url).query) == {"host": [places.run]}
