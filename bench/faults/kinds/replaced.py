"""A new configuration, version or certificate takes the place of the old one."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Generator
from pathlib import Path

from bench.errors import DeploymentError
from bench.faults.fault import Expected, caches_no_pages, fault
from bench.faults.scene import Scene
from bench.serve import render
from bench.serve.case import Case
from bench.serve.tls import make_certificate

# How long a release is served, or tried, that cannot be imported.
BROKEN_S = 3.0
# A server that the release ends may end as it is rolled back: a second until it is started again, and its start.
ROLLED_BACK_S = 5.0


@fault("configuration", group="replaced")
def configuration(scene: Scene) -> Generator[None]:
    """Every server takes over its configuration files anew."""
    case = scene.running.case
    yield
    scene.strike()
    scene.reload({name for server in case.servers for name in render.server_files(server, case)})


@fault("application", group="replaced")
def application(scene: Scene) -> Generator[None]:
    """A new version of code, templates and static files is deployed: beside the old one, switched to, reloaded."""
    release = scene.versions.new()
    yield
    scene.strike()
    scene.deploy(release)


@fault("broken-application", group="replaced", expected=Expected(lost=None, recovery_s=ROLLED_BACK_S, stale=None))
def broken_application(scene: Scene) -> Generator[None]:
    """A new version that cannot be imported is reloaded, served for 3 s, and rolled back by a second reload."""
    before, broken = scene.versions.served, scene.versions.new(broken=True)
    yield
    scene.strike()
    _reload_unchecked(scene, broken)
    scene.wait(BROKEN_S)
    _reload_unchecked(scene, before)
    scene.end()
    scene.operator = "roll back, reload"


def _reload_unchecked(scene: Scene, folder: Path) -> None:
    """Switch to a release and reload or restart the application server, whether or not the site answers then."""
    scene.versions.switch(folder)
    application = scene.running.case.servers[0].name
    if scene.running.chain.ask_application():
        return
    with contextlib.suppress(DeploymentError):
        scene.running.chain.restart(application)


def _has_no_tls(case: Case) -> str:
    front = case.servers[-1]
    return "" if front.tls else f"{front.name} has no TLS listener"


@fault("certificate", group="replaced", misfit=_has_no_tls, changes={"listener": "tls"})
def certificate(scene: Scene) -> Generator[None]:
    """The certificate of the TLS listener is replaced, and the server in front takes it over."""
    running = scene.running
    front = running.case.servers[-1]
    old = _served_certificate(scene)
    yield
    scene.strike()
    make_certificate(running.layout.tls)
    running.case.project.worker(running.layout.run_dir).give_tree(running.layout.tls)
    scene.reload(render.server_files(front, running.case).keys(), only=front.name)
    scene.end()
    if _served_certificate(scene) == old:
        scene.wrong.append(f"{front.name} still serves the old certificate")


def _served_certificate(scene: Scene) -> str:
    place = scene.running.chain.places
    return ssl.get_server_certificate((place.bind, place.port))


@fault("cache-after-deploy", group="replaced", misfit=caches_no_pages)
def cache_after_deploy(scene: Scene) -> Generator[None]:
    """A new version is deployed under a warm cache: for how long old pages come, and whether static files fit them."""
    release = scene.versions.new()
    yield
    scene.strike()
    scene.deploy(release)
