"""Faults that read pages like checks: each is as expected on the right site, and notices its mutations."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from bench.measure.faults import caching_service, edited, exhaustion, rendering
from bench.measure.faults.fault_context import FaultContext, FaultNotApplicable
from bench.measure.faults.kinds import FAULTS
from bench.serve.machine.small_disk import CannotMount
from bench.verify import rows
from bench.verify.checks import stored_files
from tests.bench.verify.conftest import KEPT
from tests.bench.verify.mutant import FakeRunning
from tests.waiting import until as wait_until

# Each sends requests to a separate process, and takes some seconds in all.
pytestmark = pytest.mark.servers

# Fault -> the mutations to be noticed.
NOTICED = {
    "caching-service": ["breaks-without-service", "no-hits-after"],
    "caching-service-hangs": ["forgets-what-it-was-not-told"],
    "restarts": ["restart-brings-back"],
    "full-store": ["full-brings-back"],
    "full-disk": ["full-disk-breaks", "full-disk-leaves", "full-disk-forever"],
    "render-lock-holder-killed": ["waits-for-the-dead"],
    "killed-mid-body": ["halves-look-whole"],
    "killed-while-writing": ["leaves-halves"],
}
PAIRS = [(name, wrong) for name, every in NOTICED.items() for wrong in every]
# Numbers of requests, and time limits for a site to become right.
SMALLER = (
    (caching_service, {"HANGS_S": 0.4}),
    (edited, {"HITS_S": 1.0}),
    (rendering, {"WAITING": 6, "KILLS": 1, "STARTED_S": 1.5}),
    (exhaustion, {"LARGE_PAGES": 1, "SMALL_PAGES": 2, "FILLS": 1, "NEW_PAGES": 1, "FULL_S": 0.1}),
    (stored_files, {"SHORT_TTL_S": 0.4, "SWEPT_S": 1.0}),
    (rows, {"INVALIDATED_S": 0.6, "SLACK_S": 0.4}),
)


class Broken(FakeRunning):
    """The deployment of the mutant, as broken by faults."""

    def __init__(self, mutant):
        super().__init__(mutant)
        self.case.layers, self.case.sidecars, self.case.caches = (KEPT,), {}, "pages"
        self.case.project = SimpleNamespace(environment=lambda env: env)

    def is_healthy(self) -> bool:
        return True

    def on_small_disk(self, folder):
        return super().on_small_disk()


class Scene(FaultContext):
    """The fault, with a killed service that is away until waited for."""

    def kill(self, name):
        self.running.mutant.say(service="stopped")

    def wait_started(self, name):
        self.running.mutant.say(service="up")

    def wait(self, seconds, until=lambda: False):
        try:
            wait_until(until, "the site", seconds)
        except AssertionError:
            return False
        return True


@pytest.fixture
def broken(mutant, site, monkeypatch):
    for module, given in SMALLER:
        for name, value in given.items():
            monkeypatch.setattr(module, name, value)
    return Scene(Broken(mutant), None, None, site)


def run(name: str, scene: FaultContext) -> list[str]:
    """Findings of a fault."""
    for _ in FAULTS[name].run(scene):
        pass
    return scene.wrong


@pytest.mark.parametrize("name", NOTICED)
def test_a_right_layer_is_as_expected_and_no_row_is_left(mutant, broken, name):
    mutant.reset(caches=True)
    # A page of the store, as visitors have left.
    broken.context.get(f"/__probe__/page/{secrets.token_hex(4)}/")
    assert run(name, broken) == []
    assert mutant.rows_left == 0


@pytest.mark.parametrize(("name", "wrong"), PAIRS)
def test_a_mutation_is_noticed_by_its_fault(mutant, broken, name, wrong):
    mutant.reset(wrong, caches=True)
    broken.context.get(f"/__probe__/page/{secrets.token_hex(4)}/")
    assert run(name, broken) != []
    assert mutant.rows_left == 0


def test_a_fault_without_rows_says_so_and_the_service_is_killed_all_the_same(mutant, broken):
    mutant.reset(caches=True)
    broken.site = SimpleNamespace(has_rows=False)
    with pytest.raises(FaultNotApplicable, match="the project has no rows"):
        run("restarts", broken)
    assert run("caching-service", broken) == [] and broken.figures["hits_return_s"] is not None


def test_a_full_disk_is_not_made_if_none_can_be_mounted(mutant, broken, monkeypatch):
    @contextmanager
    def refuse(folder):
        raise CannotMount("only root can")
        yield

    mutant.reset(caches=True)
    monkeypatch.setattr(broken.running, "on_small_disk", refuse)
    with pytest.raises(FaultNotApplicable, match="only root can"):
        run("full-disk", broken)
