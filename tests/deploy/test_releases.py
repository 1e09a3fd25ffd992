"""A new release is served after a reload: its code, its templates and its static files."""

from __future__ import annotations

import pytest

from bench.catalog import catalog, compose
from bench.faults.scene import FIRST, Versions
from bench.faults.visitors import PAGE, said
from bench.serve import deployment
from tests.deploy.running import FEW, client_of, runnable
from tests.waiting import until

pytestmark = pytest.mark.servers


def with_each_application_server() -> list[str]:
    """The shortest stack of every application server."""
    found: dict[str, str] = {}
    for stack in sorted(catalog.read().stacks.values(), key=lambda stack: len(stack.servers)):
        found.setdefault(stack.servers[0].name, stack.name)
    return list(found.values())


@pytest.mark.parametrize("stack", with_each_application_server())
def test_a_new_release_is_served_after_a_reload(site_url, stack):
    runnable(stack)
    with (
        deployment.deployed(compose.must_compose(stack, changes=FEW), database=site_url, releases=True) as running,
        client_of(running.url, timeout=20, headers={"Connection": "close"}) as client,
    ):
        seen = [said(client.get(PAGE.format("before")).text)]
        versions = Versions(running.releases)
        versions.switch(versions.new())
        running.chain.reload((), only=running.composition.servers[0].name)

        def is_new():
            # As often as there may be workers: each of them must have it.
            seen[1:] = [said(client.get(PAGE.format(f"after-{number}")).text) for number in range(16)]
            return {page[:2] for page in seen[1:]} == {("release-2", "release-2")}

        until(is_new, f"every worker serves the new release; {seen}")
        assert seen[0][:2] == (FIRST, FIRST)
        # Pages of the old release are still in browsers, and name its files.
        assert {client.get(page[4]).status_code for page in seen} == {200}
        assert seen[0][4] != seen[1][4]
