"""Every folder of deploy/stacks, on real ports: its files pass its servers' tests, it serves right pages, it goes."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable

import httpx2
import psutil
import pytest

from bench.serve.catalog import catalog, compatibility
from bench.serve.deployment import config_check, deployment
from bench.serve.deployment.deployment import Running
from bench.serve.project import commands
from bench.verify.outcome import Outcome
from bench.verify.suite import Selection, all_checks
from bench.verify.verifier import Verifier
from tests.cases import kit, resolved
from tests.deploy import examples, few
from tests.deploy.conftest import ROWS
from tests.deploy.running import FEW, QUICK_LOGINS, alive, client_of, command, get, idle_connection, runnable
from tests.waiting import until

pytestmark = pytest.mark.servers

STACKS = list(catalog.read().stacks)
LAYERS = list(catalog.read().layers)
PAIRS = [
    (stack, layer)
    for stack in STACKS
    for layer in LAYERS
    if not compatibility.layer_problem(catalog.read().stacks[stack], catalog.read().layers[layer])
]
# A layer of place `app` changes no file of a server.
CONFIGURED = [pair for pair in PAIRS if pair[1] == "none" or catalog.read().layers[pair[1]].scope != "app"]

# Each layer once on a stack that it fits, the usual one if it can be, and layers that are laid over each other.
LAYERED = list({layer: (stack, layer) for stack, layer in PAIRS if layer != "none"}.values())
LAYERED = [("nginx-uwsgi", layer) if ("nginx-uwsgi", layer) in PAIRS else (stack, layer) for stack, layer in LAYERED]
LAYERED += [pytest.param("nginx-uwsgi", "fragments+varnish", marks=pytest.mark.matrix)]
# A comment that is sent with the site's own form, too, to a layer in files and to one in front; `told-of-writes` writes
# to each of them through the probes.
COMMENTED = ("staticgenerator", "varnish")
# Verified on SQLite under most layers.
ON_POSTGRESQL = "nginx-uwsgi"
# Inputs of published holes of servers, and those of caches.
OF_SERVERS = (
    "absolute-target",
    "odd-websockets",
    "odd-lines",
    "odd-framing",
    "copied-header",
    "chunked-limit",
    "server-names",
)
OF_CACHES = ("absolute-target", "cache-deception", "stored-errors", "parameter-cloaking")
HOLES = [(stack, "none", OF_SERVERS) for stack in examples.stacks()]
HOLES += [("nginx-uwsgi", layer, OF_CACHES) for layer in ("page-cache", "nginx-memcached", "nginx-microcache")]
HOLES += [("nginx-uwsgi", layer, OF_CACHES) for layer in ("staticgenerator", "uwsgi-cache", "varnish")]
HOLES += [("apache-modwsgi", "apache-cache", OF_CACHES), ("gunicorn", "varnish", OF_CACHES)]
# The checks that take seconds are made once, of a layer with a service that can stop.
FULL = ("nginx-uwsgi", "nginx-memcached")


def files_of(pair: tuple[str, str]) -> set[Hashable]:
    """The owners of the files that a stack with a layer shows: each server, or the layer over the server."""
    stack, layer = catalog.read().stacks[pair[0]], catalog.read().layers[pair[1]]
    added = {(layer.name, server.name) for server in stack.servers if layer.files(server)}
    return few.of_stack(stack.name) if layer.is_none else {layer.name, *added}


@pytest.mark.parametrize(("stack", "layer"), few.few(CONFIGURED, files_of))
def test_the_servers_accept_their_files(stack, layer):
    runnable(stack, layer)
    findings = config_check.check(kit(), catalog.read().stacks[stack], catalog.read().layers[layer])
    assert [finding for finding in findings if finding.problem] == []


@pytest.mark.parametrize("stack", few.few([stack for stack in STACKS if stack != ON_POSTGRESQL], few.of_stack))
def test_a_stack_gives_the_right_responses(stack, site_url, verifier):
    passes_all_checks(stack, "none", site_url, verifier)


def test_the_responses_are_right_on_postgresql_too(postgresql_url, verifier):
    """As expected of the same rows on SQLite."""
    for words in (["migrate", "--verbosity", "0"], ["loadfixtures", "--rows", str(ROWS)]):
        done = command("manage.py", *words, database=postgresql_url)
        assert done.returncode == 0, done.stderr
    passes_all_checks(ON_POSTGRESQL, "none", postgresql_url, verifier)


def passes_all_checks(stack: str, layer: str, database: str, verifier: Verifier) -> None:
    runnable(stack, layer)
    case = resolved(stack, layer, database_url=database, changes=FEW, env=QUICK_LOGINS)
    with deployment.deployed(case) as running:
        assert failed_checks(verifier, running) == []


def failed_checks(verifier: Verifier, running: Running) -> list[Outcome]:
    """The checks that fail on a deployment."""
    outcomes = verifier.verify(running)
    assert running.died() is None
    assert outcomes
    return [item for item in outcomes if not item.ok]


@pytest.mark.long
@pytest.mark.parametrize(("stack", "layer"), [pair for pair in LAYERED if pair != FULL])
def test_a_layer_gives_the_right_responses(stack, layer, site_url, verifier):
    runnable(stack, layer)
    case = resolved(stack, layer, database_url=site_url, changes=FEW, env=QUICK_LOGINS)
    with deployment.deployed(case) as running:
        wrong = failed_checks(verifier, running)
        if catalog.read().joined_layers(layer)[0].unsafe:
            only_known_leaks(wrong)
        else:
            assert wrong == []
        if layer in COMMENTED:
            shows_a_comment_soon(running.url, site_url)


def only_known_leaks(wrong: list[Outcome]) -> None:
    """Assert that Django's own cache fails what nobody is excused from, but gives no page of the site to others."""
    known = {item.name: item for item in all_checks()}
    assert {"authorization", "nonce", "read-cookies"} <= {item.check for item in wrong}
    assert [item for item in wrong if known[item.check].excusable or item.group in ("privacy", "behaviour")] == []


@pytest.mark.long
def test_a_layer_passes_the_thorough_checks_too(site_url):
    passes_all_checks(*FULL, site_url, Verifier(kit(), Selection()))


@pytest.mark.matrix
@pytest.mark.parametrize(("stack", "layer", "checks"), HOLES)
def test_published_holes_are_closed(stack, layer, checks, site_url):
    runnable(stack, layer)
    case = resolved(stack, layer, database_url=site_url, changes=FEW, env=QUICK_LOGINS)
    with deployment.deployed(case) as running:
        outcomes = Verifier(kit(), Selection(checks=checks)).verify(running)
        assert running.died() is None
    assert [item for item in outcomes if not item.ok] == []
    # Each was tried, if it is no known limitation of a server.
    assert {item.check for item in outcomes if not item.skipped or item.known_limitation} == set(checks)


def shows_a_comment_soon(url: str, database: str) -> None:
    """Assert that a comment is on its pages long before their time to live is up."""
    env = commands.site_environment(kit(), database)
    created = json.loads(commands.manage(kit(), ["verifyaccount", "create"], env, kit().worker()).splitlines()[-1])
    (account,) = created["accounts"]
    try:
        with client_of(url) as visitor:
            values = {**account, "csrfmiddlewaretoken": token(visitor.get("/login/"))}
            assert visitor.post("/login/", data=values).status_code == 302
            for path in ("/", "/comments/", "/comments/page/2/"):
                hit = [get(url + path) for _ in range(2)][1]
                assert "fresh words" not in hit.text
            values = {"csrfmiddlewaretoken": token(visitor.get("/posts/1/")), "body": "fresh words", "rating": "3"}
            assert visitor.post("/posts/1/comment/", data=values).status_code == 302
        # A web server may keep a file open for a second.
        for path in ("/", "/comments/"):
            until(lambda path=path: "fresh words" in get(url + path).text, f"a fresh {path}")
    finally:
        commands.manage(kit(), ["verifyaccount", "delete", account["username"]], env, kit().worker())


def token(response: httpx2.Response) -> str:
    return re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', response.text)[1]


@pytest.mark.parametrize(
    ("stack", "inner"),
    [("nginx-apache-modwsgi", "apache"), ("nginx-cherrypy", "cheroot"), ("nginx-waitress", "waitress")],
)
def test_keep_alive_connections_behind_nginx_are_not_closed_under_it(stack, inner, site_url, tmp_path):
    runnable(stack)
    case = resolved(stack, database_url=site_url, changes={"client_keepalive_s": 1, **FEW})
    with (
        deployment.deployed(case, run_dir=tmp_path / "run") as running,
        idle_connection(running.chain.placed.listens[inner][0]) as idle,
        pytest.raises(TimeoutError),
    ):
        # Clients' idle connections are closed after a second.
        idle.settimeout(3)
        assert idle.recv(1) != b"", "closed"


def test_an_emptied_layer_begins_again_on_the_same_address(site_url, tmp_path):
    runnable("nginx-uwsgi", "page-cache+staticgenerator")
    case = resolved("nginx-uwsgi", "page-cache+staticgenerator", database_url=site_url, changes=FEW)
    with deployment.deployed(case, run_dir=tmp_path / "run") as running:
        before = {name: psutil.Process(pid) for name, pid in running.pids.items()}
        url = running.url
        assert "X-Render-Id" not in [get(url + "/posts/") for _ in range(2)][1].headers, "served from a file"
        running.empty_layer()
        assert running.url == url
        assert running.pids.keys() == before.keys()
        assert alive(before.values()) == []
        assert "X-Render-Id" in get(url + "/posts/").headers, "rendered again"
