"""On a booted host: a deploy under slow requests, by each way in which two units of an application serve together."""

from __future__ import annotations

import pytest

from bench import programs
from bench.serve.catalog import catalog
from tests.deploy.installing import (
    SERVERS,
    SOURCE,
    add_slow_page,
    commit,
    impatient_deploy,
    install,
    no_one_waits,
    prepare,
    release,
    uninstall,
    version,
    visited,
)
from tests.deploy.machine import booted

pytestmark = [pytest.mark.hosts, pytest.mark.servers]

UVICORN = ("uvicorn", "uvicorn-worker", "uvloop", "httptools", "wsproto", "h11", "click")
# What ends TLS before those without it is not installed: they are asked where it would ask them.
PLAIN = ("--plain", "8000")


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    with booted(tmp_path_factory.mktemp("machine")) as machine:
        prepare(machine, (*SERVERS, *UVICORN, "granian"), modwsgi=True)
        add_slow_page(machine)
        commit(machine, "slow-page")
        yield machine


@pytest.mark.parametrize(
    ("stack", "words"),
    [
        # A socket of systemd's, whoever speaks TLS.
        ("caddy-gunicorn", ()),
        ("gunicorn-uvicorn", PLAIN),
        ("uvicorn", PLAIN),
        # A link to a Unix socket.
        ("nginx-granian", ()),
        # The same port.
        ("granian", PLAIN),
        ("apache-modwsgi", ()),
    ],
)
def test_nobody_waits_for_the_slowest_request(host, stack, words):
    for server in catalog.read().stacks[stack].servers:
        if server.packages and programs.find(list(server.programs)) is None:
            pytest.skip(f"program not installed: {server.programs[0]}")
    install(host, stack)
    try:
        release(host, "2")
        noticed = no_one_waits(host, f"benchapp-deploy {SOURCE}", *words)
        assert noticed["versions"][-1] == "2"
        no_one_waits(host, "benchapp-deploy --again", *words)
        noticed = no_one_waits(host, "benchapp-rollback", *words)
        assert noticed["versions"][-1] == "1"
    finally:
        release(host, "1")
        uninstall(host)


def test_a_release_that_does_not_get_ready_is_taken_back(host):
    """An old process would say that it is, if it was asked too soon."""
    install(host, "nginx-granian")
    views = host.root / SOURCE[1:] / "benchapp/views.py"
    right = views.read_text()
    views.write_text(f"{right}\ndef readyz(request):\n    return HttpResponse(status=500)\n")
    commit(host, "not-ready")
    old, deploy = version(host), impatient_deploy(host)
    with visited(host) as noticed:
        done = host.try_run(deploy)
        seen = {version(host) for _ in range(12)}
    views.write_text(right)
    assert done.returncode == 1 and "does not serve, so it is not in service: curl: (22)" in done.stdout
    assert (noticed["failed"], seen) == ([], {old})
