"""Layers over each other and over stacks: what fits, and the responses of real servers."""

from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
import ssl
import subprocess
import sys

import httpx2
import pytest

from bench import paths
from bench.serve.catalog import catalog, compatibility, values
from bench.serve.deployment import case as cases
from bench.serve.deployment import deployment, render
from bench.serve.deployment.case import CannotRun, Case
from bench.serve.deployment.database import NO_DATABASE
from bench.serve.project import commands
from bench.verify.hits import path_with_response
from tests.cases import kit, resolved
from tests.deploy.running import ONE, client_of, get, runnable
from tests.skips import needs


@pytest.mark.parametrize(
    ("stack", "layers", "message"),
    [
        (
            "nginx-uwsgi",
            "staticgenerator+nginx-microcache",
            "both bring the block http of nginx.conf",
        ),
        (
            "nginx-uwsgi",
            "nginx-memcached+nginx-microcache",
            "both bring the block http of nginx.conf",
        ),
        (
            "nginx-apache-modwsgi",
            "staticgenerator+apache-cache",
            "staticgenerator and apache-cache both bring the block pages of httpd.conf",
        ),
    ],
)
def test_two_layers_in_one_place_are_a_skip_with_its_reason(stack, layers, message):
    result = cases.resolve(kit(), stack, layers, database=NO_DATABASE)
    assert isinstance(result, CannotRun)
    assert message in result.reason
    assert result.reason.endswith(": join layers that work in different places")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (one, other)
        for one in catalog.read().layers
        for other in ("fragments", "page-cache", "varnish")
        if one not in (other, "none")
    ],
)
def test_layers_in_different_places_go_together(one, other):
    layers = catalog.read().joined_layers(f"{one}+{other}")
    fitting = [
        stack
        for stack in catalog.read().stacks.values()
        if not any(compatibility.layer_problem(stack, it) for it in layers)
    ]
    assert fitting
    for stack in fitting:
        result = cases.resolve(kit(), stack.name, f"{one}+{other}", database=NO_DATABASE)
        assert isinstance(result, Case) or "not installed" in result.reason


def headers_of_the_site(chosen: values.Values) -> dict[str, str]:
    """The headers of a rendered public page with the site's environment of these values."""
    program = (
        "import json, django; django.setup()\n"
        "from django.test import Client\n"
        "from django.conf import settings\n"
        "response = Client().get('/authors/', secure=True, headers={'host': settings.ALLOWED_HOSTS[0]})\n"
        "assert response.status_code == 200\n"
        "print(json.dumps(dict(response.headers)))\n"
    )
    names = {**chosen.names, **values.derived(chosen.names)}
    given = {name: render.text(value, names, name) for name, value in chosen.env.items()}
    env = {**os.environ, **commands.site_environment(kit(), "sqlite:///:memory:", paths.STATE), **given}
    env["BENCHAPP_HSTS_SECONDS"] = str(chosen.names["hsts_seconds"])
    migrated = "from django.core.management import call_command; call_command('migrate', verbosity=0)\n"
    done = subprocess.run(
        [sys.executable, "-c", program.replace("from django.test", f"{migrated}from django.test", 1)],
        env=env,
        cwd=paths.KIT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.servers
@pytest.mark.parametrize("name", ["bench", "production"])
def test_a_stored_page_has_the_headers_of_the_site(name):
    chosen = catalog.read().values[name]
    sent = headers_of_the_site(chosen)
    own = {"Content-Type", "Content-Length", "X-Render-Id"}
    assert {key: value for key, value in sent.items() if key not in own} == values.derived(chosen.names)["page_headers"]


# The site has names below a domain, too, as in production.
NAMES = {**ONE, "server_names": "127.0.0.1 localhost example.org *.example.com"}
ALLOWED = {"ALLOWED_HOSTS": "127.0.0.1,localhost,example.org,.example.com"}


@pytest.mark.servers
@pytest.mark.parametrize(
    ("stack", "layer"),
    [
        ("nginx-uwsgi", "staticgenerator"),
        ("apache-modwsgi", "staticgenerator"),
        ("lighttpd-fastcgi", "staticgenerator"),
        ("cherokee-uwsgi", "staticgenerator"),
        ("nginx-uwsgi", "nginx-memcached"),
        ("nginx-uwsgi", "uwsgi-cache"),
    ],
)
def test_hits_over_tls_have_the_headers_of_a_rendering(stack, layer, site_url):
    production = catalog.read().values["production"]
    changes = {"listener": "tls", "hsts_seconds": production.names["hsts_seconds"], **NAMES}
    runnable(stack, layer)
    env = {"BENCHAPP_HTTPS": "1", **ALLOWED}
    case = resolved(stack, layer, database_url=site_url, changes=changes, env=env)
    with deployment.deployed(case) as running, client_of(running.url) as client:
        hits_equal_renderings(client, values.derived(production.names)["page_headers"])
        assert protocol_chosen(running.url) != "h2"
        # One deployment serves for both; the layers without TLS have another test below.
        names_share_a_page(client)


def protocol_chosen(url: str) -> str | None:
    """The choice of a TLS listener without HTTP/2 among HTTP/2 and HTTP/1."""
    context = ssl._create_unverified_context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    parts = httpx2.URL(url)
    with (
        socket.create_connection((parts.host, parts.port), timeout=10) as opened,
        context.wrap_socket(opened) as tls_socket,
    ):
        return tls_socket.selected_alpn_protocol()


def hits_equal_renderings(client: httpx2.Client, page_headers: dict[str, str]) -> None:
    rendered, hit = client.get("/posts/"), client.get("/posts/")
    assert "X-Render-Id" in rendered.headers
    assert "X-Render-Id" not in hit.headers
    assert hit.content == rendered.content
    for name, value in page_headers.items():
        assert hit.headers.get_list(name) == rendered.headers.get_list(name) == [value]
    assert hit.headers["Content-Type"] == rendered.headers["Content-Type"]
    # Requests with a session, credentials, a query string or another host do not get it.
    for more in ({"Cookie": "sessionid=x"}, {"Cookie": "a=b; sessionid=x"}, {"Authorization": "Basic eA=="}):
        assert "X-Render-Id" in client.get("/posts/", headers=more).headers
    assert "X-Render-Id" in client.get("/posts/?a=1").headers
    assert client.get("/posts/", headers={"Host": "other.test"}).status_code == 400
    assert client.head("/posts/").headers["Content-Length"] == str(len(hit.content))
    # A GET with a body gets its response at once, hit or not; lighttpd refuses it, Cherokee refuses it for a file.
    responses = [client.request("GET", "/comments/", content=b"a=1", timeout=10) for _ in range(2)]
    assert {response.status_code for response in responses} <= {200, 400, 405}


@pytest.mark.servers
@pytest.mark.parametrize(("stack", "layer"), [("nginx-uwsgi", "varnish"), ("apache-modwsgi", "apache-cache")])
def test_names_below_a_domain_share_cached_pages(stack, layer, site_url):
    runnable(stack, layer)
    case = resolved(stack, layer, database_url=site_url, changes=NAMES, env=ALLOWED)
    with deployment.deployed(case) as running, client_of(running.url) as client:
        names_share_a_page(client)


@pytest.mark.servers
def test_nginx_stores_no_page_that_names_a_max_age_since_it_sends_no_age(site_url):
    runnable("nginx-gunicorn", "nginx-microcache")
    case = resolved("nginx-gunicorn", "nginx-microcache", database_url=site_url, changes=ONE)
    aged = path_with_response(headers=[["Cache-Control", "max-age=600"]])
    with deployment.deployed(case) as running:
        for path, is_stored in (("/authors/", True), (aged, False)):
            first, second = (get(running.url.rstrip("/") + path) for _ in range(2))
            assert (first.headers["X-Render-Id"] == second.headers["X-Render-Id"]) == is_stored


def names_share_a_page(client: httpx2.Client) -> None:
    """Every name that the site has gets the cached page, and no other name gets any."""

    def status_and_rendering(name: str) -> tuple[int, str | None]:
        response = client.get("/authors/", headers={"Host": name})
        return response.status_code, response.headers.get("X-Render-Id")

    first = status_and_rendering("example.org")
    for name in ("example.org", "a.example.com", "b.a.example.com:8080"):
        status, rendering = status_and_rendering(name)
        assert (status, rendering in (None, first[1])) == (200, True), f"{name} comes from the cache"
    for name in ("evil.test", "a.example.com.evil.test", "exampleXorg", "a.exampleXcom"):
        assert status_and_rendering(name)[0] == 400, name


@pytest.mark.servers
def test_the_cache_value_chooses_the_service_and_cache_url_wins(site_url, tmp_path):
    needs("redis-server")
    variant = resolved("uwsgi@cache=redis", "fragments")
    assert [service.name for service in variant.services] == ["redis"]
    case = resolved("uwsgi", "fragments", database_url=site_url, changes={"cache": "redis", **ONE})
    with deployment.deployed(case) as running:
        assert running.env["CACHE_URL"].startswith("redis://")
        assert "memcached" not in running.pids
        assert get(running.url).status_code == 200
    env = {"CACHE_URL": "dbcache://parts"}
    with deployment.deployed(resolved("uwsgi", "page-cache", database_url=site_url, changes=ONE, env=env)) as running:
        assert running.env["CACHE_URL"] == "dbcache://parts"
        assert [get(running.url).status_code for _ in range(2)] == [200, 200]
    with sqlite3.connect(site_url.removeprefix("sqlite:///")) as database:
        assert database.execute("SELECT count(*) FROM parts").fetchone()[0] >= 1


@pytest.mark.servers
def test_behind_apache_s_cache_a_page_of_the_same_second_is_sent_and_a_file_is_not(site_url):
    """A page without Last-Modified may have been edited within the second of its Date."""
    runnable("apache-modwsgi", "apache-cache")
    with (
        deployment.deployed(resolved("apache-modwsgi", "apache-cache", database_url=site_url, changes=ONE)) as running,
        client_of(running.url) as client,
    ):
        pages = [client.get("/authors/") for _ in range(2)]
        assert pages[0].headers["X-Render-Id"] == pages[1].headers["X-Render-Id"]
        again = client.get("/authors/", headers={"If-Modified-Since": pages[1].headers["Date"]})
        assert (again.status_code, again.content) == (200, pages[1].content)
        style = re.search(r'"(/static/[^"]*\.css)"', pages[0].text)[1]
        since = client.get(style).headers["Last-Modified"]
        assert client.get(style, headers={"If-Modified-Since": since}).status_code == 304


@pytest.mark.parametrize(
    ("stack", "listener"),
    [
        # Of the files of these servers only HAProxy's and Varnish's depend on the listener.
        ("haproxy-gunicorn", "plain"),
        ("nginx-uwsgi", "tls"),
        ("lighttpd-fastcgi", "tls"),
        ("haproxy-gunicorn", "tls"),
        ("caddy-gunicorn", "tls"),
        ("cherokee-uwsgi", "tls"),
    ],
)
def test_behind_varnish_the_site_sees_the_client_and_only_it_purges(stack, listener, site_url):
    runnable(stack, "varnish")
    changes = {**ONE, "listener": listener}
    with deployment.deployed(resolved(stack, "varnish", database_url=site_url, changes=changes)) as running:
        forged = {"FrontAddress": "9.9.9.9", "FrontProto": "https", "X-Real-IP": "9.9.9.9"}
        transport = httpx2.HTTPTransport(verify=False, local_address="127.0.0.2")
        with client_of(running.url, transport=transport) as client:
            seen = client.get("/__probe__/inside", headers=forged).json()
            assert (seen["client"], seen["scheme"]) == ("127.0.0.2", running.url.partition(":")[0])
            assert client.request("PURGE", "/").status_code == 403
            assert client.request("BAN", "/").status_code == 403
            # A page without Last-Modified may have been edited within the second of its Date.
            page = client.get("/authors/")
            again = client.get("/authors/", headers={"If-Modified-Since": page.headers["Date"]})
            assert (again.status_code, again.content) == (200, page.content)
            # Larger than what Varnish takes whole.
            for megabytes in (1, 10):
                sent = client.get(f"/__probe__/download/{megabytes}/")
                assert (sent.status_code, len(sent.content)) == (200, megabytes * 1_000_000)
            photo = {"photo": b"x" * 9_000_000}
            assert client.post("/__probe__/form/photo/", files=photo).status_code == 200
        assert httpx2.request("PURGE", running.url, verify=False).status_code == 403, "from this machine too"
