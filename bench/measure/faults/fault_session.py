"""A deployment for faults: releases, a supervisor, two signed-in accounts, and its capacity."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from bench.errors import BenchError
from bench.measure.faults import judge, kinds, visitors
from bench.measure.faults.fault import Fault
from bench.measure.faults.fault_context import FaultContext, FaultNotApplicable, Versions
from bench.measure.faults.observe import FaultTimeline, Observations, observe
from bench.measure.faults.visitors import RequestedPage, background_load, watch_static_links
from bench.measure.records.fault_outcomes import FaultOutcome
from bench.measure.run.load_process import TrialError
from bench.measure.run.plan import Deployment
from bench.measure.run.session import now
from bench.serve.deployment import deployment
from bench.serve.deployment.case import Case
from bench.serve.deployment.deployment import Running
from bench.serve.deployment.supervisor import Supervisor
from bench.serve.machine import http
from bench.serve.machine.http import BadResponse, Sent, Target
from bench.serve.machine.processes import Interference, Sampler
from bench.serve.project import opened
from bench.verify.mismatch import UP_PORT, NotTried
from bench.verify.site import Site, discover_site
from bench.verify.visitor import log_in

ACCOUNTS = 2
# So many pages of another project do visitors request at most.
MAX_OWN = 3
# The visitors request so long before the fault, and after the site has come back from it.
QUIET_S, AFTER_S = 1.5, 1.5
# Time limit for the site to come back.
BACK_S = 20.0
# CPU time after the last sample counts as interference if the parent was killed, so sample often.
SAMPLES_S = 0.2
OURS = "this process and all below it"


@dataclass(frozen=True)
class FaultItem:
    """A fault to be made; `outcome` is the record before."""

    outcome: FaultOutcome
    deployment: Deployment

    @property
    def key(self) -> str:
        """The key of its outcome."""
        return self.outcome.key


@dataclass
class FaultSession:
    """The deployment during its faults.

    cookies   the Cookie header of each account, by name
    own       pages of the project for visitors
    notes     notes for the reader of the outcomes
    bounds    of the guards of an outcome (bench.measure.faults.judge)
    rounds    total number of times for each fault
    capacity  requests a second of the deployment
    """

    running: Running
    supervisor: Supervisor
    versions: Versions
    site: Site
    cookies: list[tuple[str, str]]
    own: list[RequestedPage]
    notes: list[str]
    directory: Path
    bounds: Mapping[str, float]
    rounds: int = 1
    capacity: float = 0.0

    @property
    def is_usable(self) -> bool:
        """True if everything runs and the site responds, so that another fault can be made."""
        return self.running.died() is None and self.running.is_healthy()

    def make(self, item: FaultItem, attempt: int) -> FaultOutcome:
        """Make a fault, and complete its outcome: effects on visitors, and whether they were expected."""
        fault, rate = kinds.FAULTS[item.outcome.fault], visitors.rate_of(self.capacity)
        outcome = replace(
            item.outcome,
            started_at=now(),
            capacity_per_second=round(self.capacity, 1),
            rate_per_second=float(rate),
        )
        case, ttl_s = self.running.case, 0.0
        if case.caches == "pages":
            ttl_s = float(case.settings["cache_seconds"])
        moments = FaultTimeline(wall_s=time.time() - time.monotonic(), ttl_s=ttl_s, old=self.versions.word)
        scene = FaultContext(
            self.running, self.supervisor, self.versions, self.site, rate, outcome.round, self.rounds, moments
        )
        steps = fault.run(scene)
        try:
            next(steps, None)
            return self._visited(fault, steps, scene, f"{fault.name}~{attempt}", outcome)
        except FaultNotApplicable as error:
            return replace(outcome, status="skipped", reason=str(error))
        except (BenchError, TrialError) as error:
            return replace(outcome, status="failed", reason=str(error), operator=scene.operator, servers=scene.servers)
        finally:
            steps.close()

    def _visited(
        self, fault: Fault, steps: Generator[None], scene: FaultContext, name: str, outcome: FaultOutcome
    ) -> FaultOutcome:
        """Quiet seconds, the fault, some seconds more, and the observed effects on visitors."""
        url, pages, moments = self.running.url, self.pages(), scene.moments
        interference = Interference()
        with (
            Sampler({OURS: os.getpid()}, SAMPLES_S, memory=False) as sampler,
            background_load(url, pages, scene.rate, self.directory / "visits" / name) as visits,
            watch_static_links(url, pages[0].path) as missing,
        ):
            scene.wait(QUIET_S)
            try:
                next(steps, None)
            except (BenchError, ProcessLookupError, psutil.Error) as error:
                # The visitors go on: the effects of an error on them matter all the more.
                scene.wrong.append(str(error) or type(error).__name__)
            # An earlier error means that nothing was struck.
            moments.struck = moments.struck or time.monotonic()
            moments.over = max(moments.over, moments.struck)
            scene.wait(BACK_S, self.running.is_healthy)
            scene.wait(AFTER_S)
        share = interference.share([sampler.stop()[OURS].cpu_seconds])
        next(steps, None)
        moments.new = self.versions.word
        observations = observe(visits, [*pages, *pages], moments)
        lacking = sum(missing) + sum(http.status(url, path) != 200 for path in observations.named)
        outcome = replace(outcome, **observations.figures, other_cpu_share=share, missing_static=lacking)
        return with_verdict(fault, scene, observations, outcome, self.bounds)

    def pages(self) -> list[RequestedPage]:
        """New pages, in no layer yet, and pages of the project."""
        token = secrets.token_hex(4)
        return visitors.pages(token, self.cookies, _first_mark(self.running, token)[-1], self.own)


def with_verdict(
    fault: Fault, scene: FaultContext, observations: Observations, outcome: FaultOutcome, bounds: Mapping[str, float]
) -> FaultOutcome:
    """The outcome with its status, derived from its figures."""
    expected, operator = fault.expected, scene.operator
    if "restarted" in scene.servers.values():
        # A server without reload is restarted, and declares that requests are refused meanwhile.
        expected = replace(expected, lost=None, slowest_s=None)
        operator = f"restart, {outcome.failed} requests refused"
    outcome = replace(
        outcome,
        operator=operator,
        servers=scene.servers or None,
        figures=scene.figures or None,
        request=_as_curl(scene.running.url, observations.page),
    )
    if why := judge.discarded(outcome, observations.failed_before, bounds):
        return replace(outcome, status="discarded", reason=why, known_limitation=None)
    wrong = [*scene.wrong, *judge.unexpected(outcome, expected)]
    if not wrong:
        return replace(outcome, status="ok", reason=None, known_limitation=None)
    if outcome.known_limitation:
        return replace(outcome, status="ok", reason=None)
    return replace(outcome, status="failed", reason="; ".join(wrong))


def _as_curl(url: str, page: RequestedPage | None) -> str | None:
    if page is None:
        return None
    headers: tuple[tuple[str, str], ...] = ()
    if page.cookie:
        headers = (("Cookie", page.cookie),)
    return Sent(f"{url.partition(':')[0]}://127.0.0.1:{UP_PORT}", "GET", page.path, headers).command


# ------------------------------------------------------------------------------------- bringing it up


@contextmanager
def open_session(
    case: Case, directory: Path, progress: Callable[[str], None], bounds: Mapping[str, float], rounds: int, write: bool
) -> Iterator[FaultSession]:
    """Bring the deployment up, and take it down at the end.

    `write` allows accounts in a database of the project. Raises BenchError if the deployment does not come up or gives
    no right responses.
    """
    with deployment.deployed(case, run_dir=directory, progress=progress, releases=True) as running:
        try:
            notes, rows = list(running.notes), running.case.database
            site = discover_site(running.case.project, rows, running.env["DATABASE_URL"], write)
            with _accounts(site, running, notes) as cookies:
                assert running.releases is not None
                supervisor = Supervisor(running, progress)
                versions = Versions(running.releases, _first_mark(running, secrets.token_hex(4))[0])
                own = _own_pages(running)
                stage = FaultSession(
                    running, supervisor, versions, site, cookies, own, notes, directory, bounds, rounds
                )
                progress(f"{case.stack.name}: measuring its capacity")
                stage.capacity = visitors.capacity(running.url, stage.pages(), directory / "visits")
                yield stage
        except (TrialError, BadResponse) as error:
            raise BenchError(str(error)) from None
        finally:
            progress(f"stopping {case.stack.name}")


def _first_mark(running: Running, token: str) -> tuple[str, ...]:
    """The mark of a new page for visitors. Raises BenchError without a mark."""
    path = visitors.PAGE.format(token)
    mark = visitors.parse_page_marker(http.get(running.url, path).decode())
    if mark is None:
        raise BenchError(f"GET {path}: not the page for visitors")
    return mark


def _own_pages(running: Running) -> list[RequestedPage]:
    """Pages of another project with the mark of their version: HTML, but no health check."""
    project = running.case.project
    if not project.overlaid:
        return []
    checks = opened.health_paths(project)
    pages = []
    for page in project.facts.pages:
        if page.status != 200 or page.path in checks:
            continue
        if visitors.parse_page_marker(http.get(running.url, page.path).decode(errors="replace")):
            pages.append(RequestedPage(page.path, ttl_s=_max_age(page.cache_control or "")))
    return pages[:MAX_OWN]


def _max_age(cache_control: str) -> float:
    """The longest max-age or s-maxage in seconds; 0 without any."""
    ages = re.findall(r"\b(?:s-maxage|max-age)=(\d+)", cache_control)
    return float(max(map(int, ages), default=0))


@contextmanager
def _accounts(site: Site, running: Running, notes: list[str]) -> Iterator[list[tuple[str, str]]]:
    """Signed-in accounts with their Cookie headers, removed at the end. If none is possible, a note explains."""
    try:
        accounts = site.create_accounts(ACCOUNTS)
    except NotTried as error:
        notes.append(f"no visitor is signed in: {error}")
        yield []
        return
    try:
        cookies = []
        for account in accounts:
            browser = log_in(Target.parse(running.url), site, account)
            cookies.append((account.username, browser.cookie_header()["Cookie"]))
        yield cookies
    finally:
        site.remove_accounts(accounts)
