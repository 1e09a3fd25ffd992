"""On a booted host: an application server that is reloaded by a deploy, since systemd cannot hold its socket."""

from __future__ import annotations

import pytest

from tests.deploy.installing import SOURCE, commit, impatient_deploy, install, prepare, release, version, visited
from tests.deploy.machine import booted

pytestmark = [pytest.mark.hosts, pytest.mark.servers]


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    with booted(tmp_path_factory.mktemp("machine")) as machine:
        prepare(machine, ("granian", "click"))
        install(machine, "nginx-granian")
        yield machine


def test_when_a_deploy_is_done_no_old_process_answers(host):
    release(host, "2")
    with visited(host) as noticed:
        host.run(f"benchapp-deploy {SOURCE}")
        seen = {version(host) for _ in range(12)}
    assert (noticed["failed"], seen) == ([], {"2"})


def test_a_release_that_does_not_get_ready_is_taken_back(host):
    """An old process would say that it is, if it was asked too soon."""
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
