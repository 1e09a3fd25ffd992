"""A reload while visitors request pages: nothing fails, the workers are new ones, and serve the new release."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from bench.measure.faults.fault_context import FIRST, Versions
from bench.measure.faults.visitors import PAGE, parse_page_marker
from bench.serve.catalog import catalog
from bench.serve.deployment import deployment, reload, takeover
from tests.cases import resolved
from tests.deploy import few
from tests.deploy.running import FEW, ONE, Up, client_of, command, get, runnable
from tests.waiting import until

pytestmark = pytest.mark.servers

# See `sysctls` of the servers' manifests.
MIGRATES = Path("/proc/sys/net/ipv4/tcp_migrate_req")
PATHS = ("/healthz", "/authors/", "/static/small.txt")
PAUSE_S = 0.05


# Every server at least once; of historic stacks none.
STACKS = few.covering(catalog.read().usual_stacks, lambda name: {it.name for it in catalog.read().stacks[name].servers})
CASES = [*((stack, "none") for stack in STACKS), ("gunicorn", "varnish")]


class Visitors:
    """Two visitors who request pages until the block ends, one on new connections; `failed` says what they noticed."""

    def __init__(self, url: str):
        self.url = url
        self.failed: list[str] = []
        self.responses = 0
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._visit, args=(keep,)) for keep in (False, True)]

    def __enter__(self) -> Visitors:
        for thread in self._threads:
            thread.start()
        until(lambda: self.responses > 5, "responses")
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _visit(self, keep: bool) -> None:
        client = client_of(self.url, timeout=60) if keep else client_without_keep_alive(self.url)
        while not self._over.wait(PAUSE_S):
            for path in PATHS:
                try:
                    self._note(path, self._get(client, path, keep))
                except httpx2.HTTPError as error:
                    self.failed.append(f"{path}: {error!r}")
        client.close()

    def _get(self, client: httpx2.Client, path: str, keep: bool) -> httpx2.Response:
        try:
            return client.get(path)
        except (httpx2.RemoteProtocolError, httpx2.ReadError):
            if not keep:
                raise
            # A server may close a keep-alive connection as a request arrives; a browser then sends it on another.
            return get(self.url + path, timeout=60)

    def _note(self, path: str, response: httpx2.Response) -> None:
        self.responses += 1
        if response.status_code != 200:
            self.failed.append(f"{path}: {response.status_code}")


def client_without_keep_alive(url: str) -> httpx2.Client:
    """A visitor with a new connection for each request."""
    return client_of(url, timeout=60, limits=httpx2.Limits(max_keepalive_connections=0))


def workers(url: str) -> set[int]:
    """The processes of the application that respond."""
    with client_without_keep_alive(url) as client:
        return {client.get("/__probe__/inside").json()["process_id"] for _ in range(12)}


@pytest.mark.parametrize(("stack", "layer"), CASES)
def test_a_reload_loses_no_request_and_serves_the_new_release(stack, layer, site_url):
    runnable(stack, layer)
    # A page may take longer than a second on a busy machine.
    case = resolved(stack, layer, database_url=site_url, changes={"stop_timeout_s": 10, **FEW})
    with deployment.deployed(case, releases=True) as running:
        before = workers(running.url)
        with client_without_keep_alive(running.url) as client:
            old = page(client)
        versions = Versions(running.releases)
        new = versions.new()
        with Visitors(running.url) as visitors, slow_request(running.url) as statuses:
            versions.switch(new)
            done = reload.reload(running)
            until(lambda: not before & workers(running.url), "new workers")
        assert running.died() is None
        assert list(done) == [server.name for server in case.servers]
        inner, *outer = case.servers
        assert "restarted" not in [done[server.name] for server in outer]
        doubled = takeover.is_possible(inner, running.chain.placed.listens[inner.name][0])
        if doubled:
            assert done[inner.name] == "replaced by new processes"
        elif inner.reload.application:
            assert done[inner.name].startswith("reloaded by ")
        else:
            assert done[inner.name] == "restarted"
        if inner.reload.application:
            assert statuses == [200]
        # What waits at a port that two share is lost as one of them closes it, unless the kernel hands it over.
        handed_over = not inner.shares or (MIGRATES.is_file() and MIGRATES.read_text().strip() == "1")
        if (inner.reload.application or inner.instances) and handed_over:
            assert visitors.failed == []
        serves_the_new_release(running.url, old)


@pytest.mark.parametrize("stack", ["nginx-cherrypy", "nginx-waitress"])
def test_a_restart_finishes_the_request_under_way(stack, site_url):
    """Servers that cannot reload are restarted; there is no other instance that Nginx could try next."""
    runnable(stack)
    case = resolved(stack, database_url=site_url, changes={"stop_timeout_s": 10, **ONE})
    with deployment.deployed(case) as running, slow_request(running.url) as statuses:
        running.chain.restart(case.servers[0].name)
    assert statuses == [200]


@contextmanager
def slow_request(url: str) -> Iterator[list[int | str]]:
    """A request that is under way as the block begins; its status, or its error, once the block has ended."""
    statuses: list[int | str] = []

    def request() -> None:
        try:
            statuses.append(get(f"{url}/__probe__/slow/1500/under-way/", timeout=60).status_code)
        except httpx2.TransportError as error:
            statuses.append(str(error))

    requesting = threading.Thread(target=request)
    requesting.start()
    time.sleep(0.5)
    yield statuses
    requesting.join()


def serves_the_new_release(url: str, old: tuple[str, ...]) -> None:
    """Its code, its templates and its static files; `old` is what a page said before it."""
    seen: set[tuple[str, ...]] = set()

    def everywhere() -> bool:
        # As often as there may be workers: each of them must have it.
        seen.clear()
        with client_without_keep_alive(url) as client:
            seen.update(page(client) for _ in range(16))
        return {it[:2] for it in seen} == {("release-2", "release-2")}

    until(everywhere, seen)
    assert old[:2] == (FIRST, FIRST)
    # Pages of the old release are still in browsers, and name its files.
    files = {it[4] for it in (old, *seen)}
    assert len(files) == 2
    assert {get(url + file).status_code for file in files} == {200}


def page(client: httpx2.Client) -> tuple[str, ...]:
    """The release named by a page without an earlier request."""
    return parse_page_marker(client.get(PAGE.format(secrets.token_hex(8))).text)


def test_the_command_reloads_what_up_serves(site_url):
    runnable("gunicorn")
    with Up("gunicorn", "--database", site_url) as up:
        before = workers(up.url)
        done = command("-m", "bench", "reload", "--port", str(httpx2.URL(up.url).port))
        assert (done.stdout, done.stderr, done.returncode) == ("gunicorn: replaced by new processes\n", "", 0)
        until(lambda: not before & workers(up.url), "new workers")
        other = command("-m", "bench", "reload", "--pid", "1")
        assert "benchapp reload: no `up` has pid 1; there are: " in other.stderr
        # Others may serve on this machine, too.
        assert f"gunicorn with layer none at {up.url}, pid" in other.stderr
        assert other.returncode == 2
