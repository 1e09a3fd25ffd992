"""The verifier of several deployments: repeated requests for the expected pages."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec import structs

from bench.serve.catalog import catalog
from bench.serve.deployment.database import Database
from bench.serve.machine import http
from bench.serve.machine.http import Target
from bench.serve.project import commands
from bench.serve.project.description import Write
from bench.verify import verifier
from bench.verify.checks.client import require_stranger
from bench.verify.context import Context, target_of
from bench.verify.mismatch import NotTried
from bench.verify.site import Site
from bench.verify.suite import Selection
from bench.verify.target_site import NO_COMMANDS
from tests.cases import bare, kit


@pytest.fixture
def verified(monkeypatch):
    """The function to verify deployments of the kit's site, which do not exist, with this description and these
    addresses of their database; returns the number of requests for pages, and each Context."""

    def verify(write: Write | None, *urls: str) -> tuple[int, list[Context]]:
        project, prepared, contexts = kit(), [], []
        description = structs.replace(project.description, write=write)
        project = replace(project, project=structs.replace(project.project, description=description))
        monkeypatch.setattr(commands, "warm_up", lambda project: None)
        monkeypatch.setattr(
            verifier, "discover_site", lambda *words, **more: Site({}, {}, Path(), "/static/", NO_COMMANDS)
        )
        monkeypatch.setattr(verifier, "prepare", lambda site: prepared.append(site) or site)
        monkeypatch.setattr(verifier, "run_suite", lambda context, *more: contexts.append(context) or [])
        known = catalog.read()
        case = bare(known.stack("gunicorn"), known.layers["none"], project=project, database=Database("sqlite"))
        one = verifier.Verifier(project, Selection(("status",)))
        for url in urls:
            one.verify(SimpleNamespace(env={"DATABASE_URL": url}, url="http://127.0.0.1:1/", case=case))
        return len(prepared), contexts

    return verify


@pytest.mark.parametrize(("write", "times"), [(None, 1), (Write("shell", "/"), 2)])
def test_a_described_write_stays_so_that_the_next_deployment_has_other_pages(verified, write, times):
    assert verified(write, "x", "x")[0] == times


def test_commands_look_for_the_database_where_the_deployment_has_it(verified):
    """A private cluster listens on a socket of each deployment in turn."""
    urls = ["postgresql:///site?host=/a", "postgresql:///site?host=/b"]
    contexts = verified(None, *urls)[1]
    assert [context.site.env["DATABASE_URL"] for context in contexts] == urls


@pytest.mark.parametrize(
    ("listener", "proxies", "source"),
    [
        ("plain", ["127.0.0.1/32"], ""),
        ("behind", ["10.0.0.0/8"], "127.0.0.1"),
        ("behind", ["127.0.0.1/32", "::1/128"], "127.0.0.9"),
        # Nobody on this machine is a stranger.
        ("behind", ["127.0.0.0/8"], ""),
    ],
)
def test_a_listener_behind_a_balancer_is_requested_by_a_client_whom_it_does_not_trust(listener, proxies, source):
    settings = {"listener": listener, "proxies": [ipaddress.ip_network(network) for network in proxies]}
    running = SimpleNamespace(url="http://127.0.0.1:8000/", case=SimpleNamespace(settings=settings))
    target = target_of(running)
    assert target.source == source
    context = SimpleNamespace(running=running, target=target, settings=settings)
    if listener == "behind" and not source:
        with pytest.raises(NotTried):
            require_stranger(context)
    else:
        require_stranger(context)


def test_a_client_sends_from_the_address_that_it_is_to_have():
    with socket.create_server(("127.0.0.1", 0)) as server:
        target = Target("http", "127.0.0.1", server.getsockname()[1], source="127.0.0.9")
        with http.connected(target, 5):
            peer, (address, _) = server.accept()
            peer.close()
    assert address == "127.0.0.9"
