"""One fault on one deployment: quiet seconds, the fault, some seconds more, and what visitors noticed of it."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import psutil

from bench.errors import BenchError
from bench.faults import judge
from bench.faults.fault import Fault
from bench.faults.follow import Follower
from bench.faults.observe import Moments, Noticed, noticed
from bench.faults.scene import CannotFault, Scene
from bench.faults.visitors import Page, Visitors
from bench.machine import http
from bench.machine.processes import Interference, Sampler
from bench.measure.load_process import TrialError
from bench.measure.trial import now
from bench.results.faults import FaultOutcome
from bench.verify import curl
from bench.verify.curl import Sent

# The visitors ask for so long before the fault, and after the site has come back from it.
QUIET_S = 1.5
AFTER_S = 1.5
# How long the site may take to come back.
BACK_S = 20.0
# What a process uses after its last sample is taken for that of others, should its parent have been killed.
SAMPLES_S = 0.2
OURS = "this process and all below it"


@dataclass(frozen=True)
class Asked:
    """Visitors to be: where, what they ask for, how often a second, and the directory of their log."""

    url: str
    pages: Sequence[Page]
    rate: int
    directory: Path


def make(fault: Fault, scene: Scene, asked: Asked, outcome: FaultOutcome, bounds: Mapping[str, float]) -> FaultOutcome:
    """Make the fault, and complete its outcome: what visitors noticed, and whether it was expected.

    bounds  of its guards (bench.faults.judge)
    """
    outcome = replace(outcome, started_at=now(), rate_per_second=float(asked.rate))
    steps = fault.run(scene)
    try:
        return _made(fault, steps, scene, asked, outcome, bounds)
    except CannotFault as error:
        return replace(outcome, status="skipped", reason=str(error))
    except (BenchError, TrialError) as error:
        return replace(outcome, status="failed", reason=str(error), operator=scene.operator, servers=scene.servers)
    finally:
        steps.close()


def _made(
    fault: Fault, steps: Generator[None], scene: Scene, asked: Asked, outcome: FaultOutcome, bounds: Mapping[str, float]
) -> FaultOutcome:
    next(steps, None)
    old = scene.versions.word
    visitors = Visitors(asked.url, asked.pages, asked.rate, asked.directory)
    problem = ""
    interference = Interference()
    with Sampler({OURS: os.getpid()}, SAMPLES_S, memory=False) as sampler:
        began = time.monotonic()
        visitors.start()
        try:
            with Follower(asked.url, asked.pages[0].path) as follower:
                scene.wait(QUIET_S)
                problem = _struck(steps, scene)
                scene.wait(BACK_S, scene.running.answers)
                scene.wait(AFTER_S)
        finally:
            seen = visitors.finish()
    share = interference.share([sampler.stop()[OURS].cpu_seconds])
    outcome = replace(outcome, other_cpu_share=share, missing_static=follower.missing)
    next(steps, None)
    found = noticed(seen, visitors.pages, _moments(scene, began, old))
    return judged(fault, scene, found, outcome, bounds, problem)


def _moments(scene: Scene, began: float, old: str) -> Moments:
    """When things happened; `old` is the version that was served before the fault."""
    settings = scene.running.case.settings
    cached = scene.running.case.caches == "pages"
    return Moments(
        began=began,
        struck=scene.struck,
        over=scene.over,
        deployed=scene.deployed,
        wall_s=time.time() - time.monotonic(),
        ttl_s=float(settings["cache_seconds"]) if cached else 0.0,
        old=old,
        new=scene.versions.word,
    )


def _struck(steps: Generator[None], scene: Scene) -> str:
    """Make the fault itself; what went wrong with it, while the visitors go on."""
    try:
        next(steps, None)
    except (BenchError, ProcessLookupError, psutil.Error) as error:
        return str(error) or type(error).__name__
    finally:
        # Nothing was struck where it went wrong before.
        scene.struck = scene.struck or time.monotonic()
        scene.over = max(scene.over, scene.struck)
    return ""


def judged(
    fault: Fault,
    scene: Scene,
    found: Noticed,
    outcome: FaultOutcome,
    bounds: Mapping[str, float],
    problem: str = "",
) -> FaultOutcome:
    """The outcome with its figures and its status.

    outcome  what is known of it so far: the static files that were missing as visitors asked, the CPU time of others
    problem  what went wrong with the fault itself
    """
    names = {item.name for item in fields(FaultOutcome)}
    missing = (outcome.missing_static or 0) + _missing(scene.running.url, found.named)
    restarted = "restarted" in scene.servers.values()
    # What cannot reload is restarted, and refuses requests meanwhile: that is its nature, and said.
    expected = replace(fault.expected, lost=None) if restarted else fault.expected
    outcome = replace(
        outcome,
        **{name: value for name, value in vars(found).items() if name in names},
        missing_static=missing,
        operator=f"restart, {found.failed} requests refused" if restarted else scene.operator,
        servers=scene.servers or None,
        figures=scene.figures or None,
        request=_request(scene.running.url, found.asked) if found.asked else None,
    )
    if why := judge.void(found, outcome.other_cpu_share or 0.0, bounds):
        return replace(outcome, status="voided", reason=why)
    wrong = [*filter(None, [problem]), *scene.wrong, *judge.unexpected(found, expected, missing)]
    if wrong and not outcome.declared:
        return replace(outcome, status="failed", reason="; ".join(wrong))
    return replace(outcome, status="ok", reason=None, declared=outcome.declared if wrong else None)


def _request(url: str, page: Page) -> str | None:
    headers = (("Cookie", page.cookie),) if page.cookie else ()
    return curl.as_command(Sent(url.partition(":")[0], "GET", page.path, headers, has_body=False, host=None))


def _missing(url: str, named: frozenset[str]) -> int:
    """How many of these static files are not answered with 200 now."""
    return sum(http.status(url, path) != 200 for path in named)
