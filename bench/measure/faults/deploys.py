"""A new configuration, version, certificate or worker takes the place of the old one."""

from __future__ import annotations

import contextlib
import secrets
import ssl
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from bench.errors import BenchError, DeploymentError
from bench.measure.faults.fault import NO_CACHED_PAGES, NO_RECYCLING, NO_TLS, Expected, fault
from bench.measure.faults.fault_context import FaultContext, FaultNotApplicable, Workers, application, front, status_of
from bench.serve.deployment import render
from bench.serve.deployment.tls import make_certificate
from bench.serve.project import commands

# Seconds for which a release that cannot be imported is served or tried.
BROKEN_S = 3.0
# A server ended by a broken release may end while it is rolled back: a second until the restart, and its start.
ROLLED_BACK = Expected(lost=None, recovery_s=5.0, stale=None)
# Duration of the slow request during a deploy, its lead before the deploy, and its allowance beyond. No other request
# may wait for it; each version's pages come meanwhile.
SLOW_S, BEGUN_S, SLACK_S = 10, 0.5, 20
SLOW_PAGE = f"/__probe__/slow/{SLOW_S * 1000}/{{}}/"
NO_WAIT = Expected(stale=None, slowest_s=2.0)
# Number of recycled workers, and time limit for the visitors' requests to cause it.
RECYCLED, RECYCLED_S, POLL_S = 2, 30.0, 0.2


@fault("configuration", "replaced")
def configuration(scene: FaultContext) -> Generator[None]:
    """Every server reloads its configuration files."""
    case = scene.running.case
    yield
    with scene.cause():
        scene.reload(set[str]().union(*(render.server_files(server, case) for server in case.servers)))


@fault("application", "replaced")
def deploy(scene: FaultContext) -> Generator[None]:
    """A new version of code, templates and static files is deployed: beside the old one, switched to, reloaded."""
    case, env, release = scene.running.case, scene.running.env, scene.versions.new()
    yield
    with scene.cause():
        scene.versions.switch(release)
        try:
            scene.reload((), only=application(case))
            if case.caches == "pages":
                worker = case.project.worker()
                commands.manage(case.project, ["invalidatepages"], env, worker)
        except BenchError:
            scene.operator = "repair"
            raise
        scene.moments.deployed = time.monotonic()


cache_after_deploy = replace(
    deploy,
    name="cache-after-deploy",
    title="A new version is deployed under a warm cache: how long old pages come, and whether static files fit them.",
    misfit=NO_CACHED_PAGES,
)


@fault("deploy-under-slow-requests", "replaced", NO_WAIT, stop_timeout_s=30)
def deploy_under_slow_requests(scene: FaultContext) -> Generator[None]:
    """A new version is deployed during a request of 10 s, which gets its response, and no other request waits."""
    release, path = scene.versions.new(), SLOW_PAGE.format(secrets.token_hex(4))
    yield
    with ThreadPoolExecutor(1, "slow") as pool:
        slow = pool.submit(status_of, scene.target, path, SLOW_S + SLACK_S)
        scene.wait(BEGUN_S)
        with scene.cause():
            scene.versions.switch(release)
            scene.reload((), only=application(scene.running.case))
        scene.wait(SLOW_S + SLACK_S, slow.done)
    if slow.result() != "200":
        scene.wrong.append(f"the slow request: {slow.result()}")


@fault("broken-application", "replaced", ROLLED_BACK)
def broken_application(scene: FaultContext) -> Generator[None]:
    """A new version that cannot be imported is reloaded, served for 3 s, and rolled back by a second reload."""
    before, broken = scene.versions.served, scene.versions.new(broken=True)
    yield
    with scene.cause():
        _reload_unchecked(scene, broken)
        scene.wait(BROKEN_S)
        _reload_unchecked(scene, before)
    scene.operator = "roll back, reload"


def _reload_unchecked(scene: FaultContext, folder: Path) -> None:
    """Switch to a release and reload or restart the application server, whether or not the site responds afterwards."""
    scene.versions.switch(folder)
    if scene.running.chain.reload_application():
        return
    with contextlib.suppress(DeploymentError):
        scene.running.chain.restart(application(scene.running.case))


@fault("certificate", "replaced", misfit=NO_TLS, listener="tls")
def certificate(scene: FaultContext) -> Generator[None]:
    """The certificate of the TLS listener is replaced, and the server in front reloads it."""
    running, name = scene.running, front(scene.running.case)
    place = running.chain.placed.places
    old = ssl.get_server_certificate((place.bind, place.port))
    yield
    with scene.cause():
        make_certificate(running.layout.tls)
        running.case.project.worker(running.layout.run_dir).give_tree(running.layout.tls)
        scene.reload(render.server_files(running.case.servers[-1], running.case).keys(), only=name)
    if ssl.get_server_certificate((place.bind, place.port)) == old:
        scene.wrong.append(f"{name} still serves the old certificate")


@fault("recycled-workers", "replaced", misfit=NO_RECYCLING, max_requests=200)
def recycled_workers(scene: FaultContext) -> Generator[None]:
    """Each worker is replaced after 200 requests and up to 50 more, until two have been replaced."""
    yield
    with scene.cause():
        workers, began = Workers(scene.running), time.monotonic()
        while workers.update() < RECYCLED and time.monotonic() < began + RECYCLED_S:
            scene.wait(POLL_S)
    scene.figures["workers_replaced"] = workers.ended
    if not workers.ended:
        raise FaultNotApplicable(f"no worker was replaced in {RECYCLED_S:g} s of visits")


FAULTS = (
    configuration,
    deploy,
    deploy_under_slow_requests,
    broken_application,
    certificate,
    cache_after_deploy,
    recycled_workers,
)
