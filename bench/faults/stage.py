"""A deployment made ready for faults: releases, a supervisor, two accounts that are signed in, and its capacity."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench.errors import BenchError
from bench.faults import trial, visitors
from bench.faults.fault import Fault
from bench.faults.scene import Scene, Versions
from bench.faults.trial import Asked
from bench.interrupt import Interrupts
from bench.machine import http
from bench.measure.load_process import TrialError
from bench.project import commands, under_test
from bench.results.faults import FaultOutcome
from bench.serve import deployment
from bench.serve.case import Case
from bench.serve.deployment import Running
from bench.serve.supervisor import Supervisor
from bench.verify.browser import log_in
from bench.verify.finding import NotTried
from bench.verify.site import Site, learn, permitted
from bench.verify.wire import BadAnswer, Target

ACCOUNTS = 2
# So many pages of another project do visitors ask for at most.
MAX_OWN = 3


@dataclass
class Stage:
    """The deployment while its faults are made.

    cookies   the Cookie header of each account, by its name
    own       pages of the project that visitors ask for, too
    notes     what a reader of its outcomes must know
    bounds    of the guards of an outcome
    rounds    how often each fault is made in all
    capacity  requests a second that it answers
    """

    running: Running
    supervisor: Supervisor
    versions: Versions
    site: Site
    cookies: list[tuple[str, str]]
    own: list[visitors.Page]
    notes: list[str]
    directory: Path
    bounds: Mapping[str, float]
    rounds: int = 1
    capacity: float = 0.0

    def measure(self) -> None:
        """Measure its capacity. Raises TrialError when it gives no right answer."""
        self.capacity = visitors.capacity(self.running.url, self._pages(), self.directory / "visits")

    def make(self, fault: Fault, outcome: FaultOutcome, name: str) -> FaultOutcome:
        """Make a fault; the completed outcome. `name` is that of the visitors' log."""
        rate = visitors.rate_of(self.capacity)
        scene = Scene(self.running, self.supervisor, self.versions, self.site, rate, (outcome.round, self.rounds))
        asked = Asked(self.running.url, self._pages(), rate, self.directory / "visits" / name)
        outcome = replace(outcome, capacity_per_second=round(self.capacity, 1))
        return trial.make(fault, scene, asked, outcome, self.bounds)

    def is_whole(self) -> bool:
        """Whether everything runs and the site answers, so that another fault can be made."""
        return self.running.died() is None and self.running.answers()

    def _pages(self) -> list[visitors.Page]:
        """Pages of new names, which no layer has yet, and pages of the project."""
        token = secrets.token_hex(4)
        said = _first_said(self.running, token)
        return visitors.pages(token, self.cookies, said[-1], self.own)


def _first_said(running: Running, token: str) -> tuple[str, ...]:
    """What a visitors' page of a new name says. Raises BenchError where it says nothing."""
    path = visitors.PAGE.format(token)
    said = visitors.said(http.get(running.url, path).decode())
    if said is None:
        raise BenchError(f"GET {path}: not the page that visitors ask for")
    return said


def _own_pages(running: Running) -> list[visitors.Page]:
    """Pages of another project that say which version rendered them: HTML that is no check of its health."""
    project = running.case.project
    if not project.overlaid:
        return []
    checks = under_test.health_paths(project)
    found = [page for page in project.facts.pages if page.status == 200 and page.path not in checks]
    asked = [visitors.Page(page.path, ttl_s=_max_age(page.cache_control or "")) for page in found]
    said = [visitors.said(http.get(running.url, page.path).decode(errors="replace")) for page in asked]
    return [page for page, words in zip(asked, said, strict=True) if words][:MAX_OWN]


def _max_age(cache_control: str) -> float:
    """For how many seconds a page says that caches may have it; 0 where it does not say."""
    ages = re.findall(r"\b(?:s-maxage|max-age)=(\d+)", cache_control)
    return float(max(map(int, ages), default=0))


@contextmanager
def staged(
    case: Case,
    *,
    directory: Path,
    progress: Callable[[str], None],
    bounds: Mapping[str, float],
    rounds: int,
    write: bool,
    interrupts: Interrupts,
) -> Iterator[Stage]:
    """Bring the deployment up, and take it down at the end; signals wait meanwhile.

    `write` lets accounts be made in a database that a project uses itself.
    Raises BenchError when it does not come up or gives no right answers.
    """
    up = deployment.deployed(case, run_dir=directory, progress=progress, releases=True)
    with interrupts.released_at_end(), up as running:
        try:
            site = _site(running, write)
            notes = list(running.notes)
            with _accounts(site, running, notes) as cookies:
                assert running.releases is not None
                supervisor = Supervisor(running, progress)
                versions = Versions(running.releases, _first_said(running, secrets.token_hex(4))[0])
                own = _own_pages(running)
                stage = Stage(running, supervisor, versions, site, cookies, own, notes, directory, bounds, rounds)
                progress(f"{case.stack.name}: measuring its capacity")
                stage.measure()
                yield stage
        except (TrialError, BadAnswer) as error:
            raise BenchError(str(error)) from None
        finally:
            interrupts.hold()
            progress(f"stopping {case.stack.name}")


def _site(running: Running, write: bool) -> Site:
    """The project's URLs and commands, and what they may write."""
    project = running.case.project
    env = project.environment(commands.site_environment(project, running.env["DATABASE_URL"], project.var))
    who, said = project.worker().prefix, project.description
    site = learn(None, env, project.python, project.manage_py, prefix=who, description=said)
    return permitted(site, project, running.case.database, write)


@contextmanager
def _accounts(site: Site, running: Running, notes: list[str]) -> Iterator[list[tuple[str, str]]]:
    """Accounts that are signed in, with their Cookie headers, removed at the end. Where none can be, a note says so."""
    try:
        accounts = site.create_accounts(ACCOUNTS)
    except NotTried as error:
        notes.append(f"no visitor is signed in: {error.reason}")
        yield []
        return
    try:
        target = Target.parse(running.url)
        browsers = [log_in(target, site, account) for account in accounts]
        yield [
            (account.username, browser.cookie_header()["Cookie"])
            for account, browser in zip(accounts, browsers, strict=True)
        ]
    finally:
        site.remove_accounts(accounts, [])
