"""The checks of writes, stampedes, files, services and advisories: right layers pass, wrong ones fail."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from msgspec import structs

from bench import paths
from bench.machine.small_disk import CannotMount
from bench.verify import wire
from bench.verify.checks import advisories, files, freshness, full, killed, service, stampede
from bench.verify.suite import all_checks
from bench.verify.workers import NOT_BACK
from tests.bench.verify import conftest
from tests.bench.verify.fake_running import FakeRunning

# Each needs a second or more of requests or of other programs.
pytestmark = pytest.mark.servers

GROUPS = ("freshness", "stampede", "files", "service", "advisories")
# Check -> the mistakes of the fake layer that it must notice.
MISTAKES = {
    "told-of-writes": [
        "not-told",
        "forgets-home",
        "updates-not-told",
        "shows-rolled-back",
        "shows-uncommitted",
    ],
    "told-of-authors": ["not-told", "forgets-names", "forgets-posts"],
    "told-of-commands": ["commands-not-told", "not-told"],
    "read-your-write": ["old-for-a-moment"],
    "slow-rendering": ["keeps-late", "late-gets-old"],
    "time-to-live": ["never-expires", "keeps-what-is-gone"],
    "full-store": ["full-brings-back", "full-keeps-late"],
    "full-disk": ["full-disk-stale", "full-disk-breaks", "full-disk-leaves", "full-disk-forever"],
    "stampede": ["each-renders", "breaks"],
    "stampede-slow": ["slow-render-each", "breaks", "uncacheable-wait"],
    "render-lock-holder-killed": ["waits-for-the-dead"],
    "killed-mid-body": ["halves-look-whole", "keeps-halves"],
    "whole-pages": ["tears", "hoards"],
    "killed-while-writing": ["tears", "leaves-halves", "hoards"],
    "service-stops": ["breaks-without-service", "no-hits-after"],
    "service-hangs": ["breaks-without-service", "no-hits-after", "waits-for-service", "forgets-what-it-was-not-told"],
    "restarts": ["restart-brings-back"],
    "cve-2014-0473": ["keeps-cookies"],
    "cve-2014-1418": ["strips-for-old", "keeps-private keeps-sessions"],
    "cve-2020-13254": ["cuts-keys"],
    "cve-2020-24584": ["open-folders"],
    "cve-2021-23336": ["query-ignored"],
    "cve-2026-6907": ["keeps-vary-star"],
    "cve-2026-8404": ["keeps-spelt"],
    "cve-2026-25674": ["open-files"],
    "cve-2026-35192": ["keeps-cookies"],
    "cve-2026-35193": ["answers-authorized"],
    "cve-2026-48587": ["keeps-vary-star", "keeps-cookies"],
    "cve-2026-48588": ["keeps-cookies"],
    "cve-2026-113593": ["keeps-variants"],
}


@pytest.fixture
def server():
    """A server whose worker process is replaced when it is killed."""
    with subprocess.Popen(["/bin/sh", "-c", "while :; do sleep 60 & wait; done"]) as process:
        yield process
        workers = psutil.Process(process.pid).children()
        process.kill()
        for worker in workers:
            worker.kill()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(wire, "TIMEOUT_S", 3.0)
    for module, values in (
        (freshness, {"OWN_WRITES": 2, "INVALIDATED_S": 0.3, "SHORT_TTL_S": 0.3, "SLACK_S": 0.4}),
        (full, {"INVALIDATED_S": 0.3, "LARGE_PAGES": 1, "SMALL_PAGES": 2, "FILLS": 1, "NEW_PAGES": 1}),
        (stampede, {"VERY_SLOW_MS": 300, "MANY_CLIENTS": 12, "UNCACHEABLE_CLIENTS": 6, "UNCACHEABLE_S": 1.0}),
        (killed, {"WAITING": 6, "RENDERED_ANEW_S": 1.5}),
        (files, {"CLIENTS": 16, "WRITING_S": 0.4, "BETWEEN_S": 0.3, "KILLS": 1, "SHORT_TTL_S": 0.3, "SLACK_S": 0.4}),
        (service, {"CLIENTS": 2, "BEFORE_S": 0.1, "WITHOUT_S": 0.2, "BACK_S": 0.3, "INVALIDATED_S": 0.3}),
        (service, {"HUNG_S": 0.4, "PAGE_S": 2.0}),
    ):
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)


def deployment(stub, url, pids=None, invalidation="a signal", services=("memory",)):
    case = SimpleNamespace(
        layers=(structs.replace(conftest.KEPT, invalidation=invalidation),),
        servers=(SimpleNamespace(name="app"),),
        services=tuple(SimpleNamespace(name=name) for name in services),
    )
    return FakeRunning(stub, url, case, pids or {})


def verified(stub, url, only, running):
    found = conftest.verified(url, stub.site(), running.case.layers[0], checks=only, groups=GROUPS, running=running)
    return {item.check: item for item in found}


def test_a_right_layer_passes_every_check_and_no_row_is_left(stub, url, server):
    stub.reset()
    found = verified(stub, url, (), deployment(stub, url, {"app": server.pid}))
    assert [item for item in found.values() if not item.ok or item.not_tried] == []
    assert stub.rows == {}


@pytest.mark.parametrize(("name", "mistake"), [(name, mistake) for name in MISTAKES for mistake in MISTAKES[name]])
def test_a_wrong_layer_fails_the_check_and_no_row_is_left(stub, url, server, name, mistake):
    stub.reset(*mistake.split())
    found = verified(stub, url, [name], deployment(stub, url, {"app": server.pid}))[name]
    assert not found.ok, f"{name} does not notice {mistake}: {found}"
    assert found.expected
    assert found.got
    assert stub.rows == {}


def test_a_busy_machine_hides_no_stale_page(stub, url, server, monkeypatch):
    """The time of an invalidation is over before the page is requested for the first time."""
    monkeypatch.setattr(freshness, "INVALIDATED_S", -1.0)
    stub.reset("keeps-late")
    assert not verified(stub, url, ["slow-rendering"], deployment(stub, url, {"app": server.pid}))["slow-rendering"].ok


def test_a_site_that_ended_with_its_workers_is_not_asked_by_the_next_check(stub, url, server, monkeypatch):
    made = []
    again = FakeRunning.again
    monkeypatch.setattr(FakeRunning, "again", lambda self, changes: made.append(changes) or again(self, changes))
    monkeypatch.setattr(killed, "seconds_until", lambda context, path: None)
    stub.reset()
    found = verified(
        stub, url, ["render-lock-holder-killed", "killed-mid-body"], deployment(stub, url, {"app": server.pid})
    )
    assert found["render-lock-holder-killed"].not_tried == NOT_BACK
    assert (made, found["killed-mid-body"].ok) == ([{}, {}], True)


def test_every_check_has_a_mistake_that_it_notices():
    assert list(MISTAKES) == [item.name for item in all_checks() if item.group in GROUPS]


def test_the_table_of_advisories_matches_the_checks():
    rows = re.findall(r"^\| \[(CVE-[0-9-]+)\]", (paths.PROJECT / "docs" / "advisories.md").read_text("utf-8"), re.M)
    assert sorted(row.lower() for row in rows) == sorted(name for name in MISTAKES if name.startswith("cve-"))


def test_a_full_disk_is_not_tried_where_none_can_be_mounted(stub, url, monkeypatch):
    def refuse(self):
        raise CannotMount("only root can")

    stub.reset()
    monkeypatch.setattr(FakeRunning, "on_small_disk", refuse)
    found = verified(stub, url, ["full-disk"], deployment(stub, url))["full-disk"]
    assert (found.ok, found.not_tried) == (True, "only root can")


def test_a_layer_without_invalidation_is_right_after_its_ttl(stub, url):
    stub.reset("not-told")
    found = verified(stub, url, ["told-of-writes", "time-to-live"], deployment(stub, url, invalidation=""))
    assert found["told-of-writes"].not_tried == "no write invalidates kept: see time-to-live"
    assert found["time-to-live"].ok
    # How old the pages got depends on the time of the requests.
    assert {"old_p50_ms", "old_max_ms"} <= found["time-to-live"].figures.keys()


def test_checks_that_need_a_deployment_are_not_tried_on_a_target(stub, url):
    stub.reset("no-rows")
    names = ["told-of-writes", "time-to-live", "whole-pages", "service-stops", "service-hangs", "cve-2020-24584"]
    names += ["render-lock-holder-killed", "killed-mid-body", "restarts"]
    found = conftest.verified(url, stub.site(), "varnish", checks=names)
    assert all(item.ok and item.not_tried for item in found)


def test_service_checks_need_a_service(stub, url):
    stub.reset()
    for name in ("service-stops", "service-hangs"):
        found = verified(stub, url, [name], deployment(stub, url, services=()))[name]
        assert found.not_tried == "no layer here uses a service"


def test_a_temporary_file_that_goes_meanwhile_is_no_finding(tmp_path, monkeypatch):
    for name in ("page", "page.0001"):
        (tmp_path / name).touch(0o644)
    monkeypatch.setattr(advisories, "_get", lambda context, path: None)
    context = SimpleNamespace(running=SimpleNamespace(store=tmp_path))

    def renamed_since(path: Path) -> bool:
        if path.name == "page.0001":
            path.unlink()
        return True

    assert list(advisories._modes(context, renamed_since, ["/"])) == []
